"""Makes an authority and a certificate for 127.0.0.1 in a folder, and says where they are."""

import json
import sys
from pathlib import Path

from support.certificates import Authority

authority = Authority(Path(sys.argv[1]))
pair = authority.signed("localhost", "IP:127.0.0.1")
print(json.dumps({"ca": str(authority.cert), "cert": str(pair.cert), "key": str(pair.key)}))
