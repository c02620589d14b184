"""The scripts that every page needs are found with all that they import."""

from ui import ahead
from ui.look import with_look


def test_what_is_imported_is_found_too():
    names = ahead.needed()
    assert len(set(names)) == len(names) > 50
    for kind in ahead.NEEDED:
        assert any(name.startswith(f"{kind}.") for name in names), f"Streamlit has no script {kind} any more"
    for name in names:
        text = (ahead.SCRIPTS / name).read_text(encoding="utf-8")
        assert set(ahead.IMPORT.findall(text)) <= set(names)


def test_a_script_is_named_once_in_streamlits_page():
    page = (ahead.SCRIPTS.parent.parent / "index.html").read_bytes()
    text = with_look(page).decode()
    assert text.count('rel="modulepreload"') > page.count(b'rel="modulepreload"') + 20
    for name in ahead.needed():
        assert text.count(f"/{name}") == 1


def test_a_streamlit_without_them_is_no_error(monkeypatch, tmp_path):
    monkeypatch.setattr(ahead, "SCRIPTS", tmp_path)
    (tmp_path / "Html.a.js").write_text('import{t}from"./gone.b.js";import"./there.c.js"')
    (tmp_path / "there.c.js").write_text('import("./later.d.js")')
    (tmp_path / "later.d.js").write_text("")
    assert ahead.needed.__wrapped__() == ("Html.a.js", "there.c.js")
