"""The colours that every run is sent are read from the settings once."""

from streamlit import config

from ui import server


def test_a_section_of_the_settings_is_read_once_and_nobody_can_change_what_is_kept(monkeypatch):
    read = []

    def options(section):
        read.append(section)
        return {"primaryColor": "#0072B2"}

    monkeypatch.setattr(config, "get_options_for_section", options)  # and what is put in its place comes out again
    server.read_the_look_once()
    config.get_options_for_section("theme").clear()
    assert config.get_options_for_section("theme") == {"primaryColor": "#0072B2"}
    assert config.get_options_for_section("theme.dark") == {"primaryColor": "#0072B2"}
    assert read == ["theme", "theme.dark"]
