"""`python -m bert_core COMMAND`."""

import sys

from bert_core.cli import main

sys.exit(main(sys.argv[1:]))
