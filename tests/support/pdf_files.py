"""PDF files of a few lines."""

from __future__ import annotations

import zlib


def pdf(*contents: bytes, more: bytes = b"", kids: bytes = b"") -> bytes:
    """A PDF with a page for each stream of drawing operators."""
    count = len(contents)
    kids = kids or b" ".join(b"%d 0 R" % (4 + 2 * n) for n in range(count))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R %b >>" % more,
        b"<< /Type /Pages /Kids [%b] /Count %d >>" % (kids, count),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for n, content in enumerate(contents):
        packed = zlib.compress(content)
        objects += [
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % (5 + 2 * n),
            b"<< /Length %d /Filter /FlateDecode >>\nstream\n%b\nendstream" % (len(packed), packed),
        ]
    out, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size, start = len(objects) + 1, len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n%b" % (size, table)
    return out + b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (size, start)
