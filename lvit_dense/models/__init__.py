"""The models that mmengine's registry builds: importing this package registers all of them."""

from lvit_dense.discovery import import_siblings

import_siblings("lvit_dense.models")
