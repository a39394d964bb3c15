"""What all tests share."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def unformatted_configs():
    """yapf, which mmengine calls at every checkpoint, takes two seconds per config: most of the time of short runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("yapf.yapflib.yapf_api.FormatCode", lambda text, **_: (text, True))
        yield
