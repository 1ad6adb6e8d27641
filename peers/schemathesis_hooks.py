"""Files of recipients are described as text; schemathesis sends them as they are."""

import schemathesis

schemathesis.serializer.alias(["application/x-ndjson", "text/csv"], "text/plain")
