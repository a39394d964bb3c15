"""The tables that can be reproduced, one file each; a new file here is a new table."""
