#!/bin/bash
set -e
# The filter runs once, so what it removes can join the parts of another script.
cat > /app/out.html <<'HTML'
<html><body><scr<script></script>ipt>alert(1)</scr<script></script>ipt></body></html>
HTML
