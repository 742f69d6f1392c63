"""Running programs without the right of root to read and write everything."""

from __future__ import annotations

import os
import shutil

import pytest

SETPRIV = shutil.which("setpriv")
AS_A_USER = [SETPRIV, "--bounding-set=-dac_override,-dac_read_search"] if SETPRIV and os.geteuid() == 0 else []
needs_a_user = pytest.mark.skipif(os.geteuid() == 0 and not AS_A_USER, reason="root without setpriv may do everything")
