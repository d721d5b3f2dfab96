"""Messages and mailboxes: headers, bodies, attachments, and what is said to be left out."""

from __future__ import annotations

import base64

import pytest
from document.conftest import Open
from document.inputs import docx, paragraph, text_of, zipped

from localctx.document.limits import Limits
from localctx.document.mail_parser import parsed
from localctx.errors import LimitExceeded

HEADERS = b"From: =?utf-8?B?SsO8cmdlbg==?= <j@x.de>\nTo: a@b.c\nDate: Mon, 1 Jan 2024 10:00:00 +0100\n"


def mixed(*parts: bytes, kind: bytes = b"mixed", boundary: bytes = b"B") -> bytes:
    """The header and body of a multipart."""
    body = b"".join(b"--" + boundary + b"\n" + part + b"\n" for part in parts)
    return b'Content-Type: multipart/%s; boundary="%s"\n\n%s--%s--\n' % (kind, boundary, body, boundary)


def attached(name: str, data: bytes, kind: str = "application/octet-stream") -> bytes:
    """A part with a file."""
    head = f'Content-Type: {kind}\nContent-Disposition: attachment; filename="{name}"\n'
    return head.encode() + b"Content-Transfer-Encoding: base64\n\n" + base64.encodebytes(data)


PLAIN = b"Content-Type: text/plain; charset=iso-8859-1\n\nGr\xfc\xdfe.\n> quoted reply\n"
HTML = b"Content-Type: text/html; charset=utf-8\n\n<h1>Big</h1><p>Only <b>HTML</b>.</p><script>no</script>\n"


def test_a_message_with_encoded_words_and_a_plain_body(open_bytes: Open) -> None:
    subject = b"Subject: =?iso-8859-1?Q?Gr=FC=DFe?=\n =?utf-8?Q?_aus_K=C3=B6ln?=\n"
    data = HEADERS + subject + mixed(PLAIN, HTML, kind=b"alternative")
    document = open_bytes(data, "a.eml")
    assert document.format == "eml"
    assert text_of(document) == (
        "Grüße aus Köln\nFrom: Jürgen <j@x.de>\nTo: a@b.c\nDate: Mon, 1 Jan 2024 10:00:00 +0100\n\n"
        "Grüße.\n> quoted reply\n\n"
    )
    assert [section.title for section in document.sections] == ["Grüße aus Köln"]


def test_html_is_read_where_there_is_no_plain_body(open_bytes: Open) -> None:
    empty = b"Content-Type: text/plain\n\n   \n"
    for data in (HEADERS + HTML, HEADERS + mixed(empty, HTML, kind=b"alternative")):
        document = open_bytes(data, "a.eml")
        assert "\n\nBig\n\nOnly HTML.\n" in text_of(document)
        assert [section.title for section in document.sections] == ["(no subject)"]


def test_of_forms_of_one_body_a_whole_one_is_taken(open_bytes: Open) -> None:
    def html(text: str) -> bytes:
        return f"Content-Type: text/html\n\n<p>{text}</p>\n".encode()

    def plain(text: str) -> bytes:
        return f"Content-Type: text/plain\n\n{text}\n".encode()

    file = attached("data.csv", b"a,b\n", "text/csv")
    rich = mixed(html("above"), file, html("below"), boundary=b"I")
    lines = mixed(plain("above"), file, plain("below"), boundary=b"I")
    cases = (
        ((plain("  "), rich), "above\n\nbelow"),
        ((lines, html("as HTML")), "above\n\nbelow"),
        ((html("as HTML"), lines), "above\n\nbelow"),
        ((plain("all"), rich), "all"),
        ((mixed(plain("note"), html("above"), html("below"), boundary=b"I"),), "note\n\nabove\n\nbelow"),
    )
    for forms, body in cases:
        text = text_of(open_bytes(HEADERS + mixed(*forms, kind=b"alternative"), "a.eml"))
        shown = text.partition("+0100\n\n")[2].partition("Attachments:")[0]
        assert [line for line in shown.split("\n") if line] == [line for line in body.split("\n") if line]
        assert ("a,b" in text) == any(b"data.csv" in form for form in forms)


def test_raw_bytes_in_a_subject(open_bytes: Open) -> None:
    assert "Prüfung" in text_of(open_bytes("Subject: Prüfung\n\nx\n".encode(), "a.eml"))


def test_attachments_are_sections_or_said_to_be_left_out(open_bytes: Open) -> None:
    word = docx(paragraph("Clause one", "Heading1") + paragraph("The rent is 900."), styles=(
        '<w:style w:styleId="Heading1"><w:name w:val="heading 1"/></w:style>'
    ))  # fmt: skip
    data = HEADERS + b"Subject: Files\n" + mixed(
        PLAIN,
        attached("contract.docx", word),
        attached("data.csv", b"a,b\n1,2\n", "text/csv"),
        attached("pack.zip", zipped({"a.txt": "x"})),
        attached("logo.png", b"\x89PNG\r\n\x1a\n" + bytes(40), "image/png"),
        b"Content-Type: message/rfc822\n\nSubject: Inner\nFrom: z@z\n\ninner body\n",
    )  # fmt: skip
    document = open_bytes(data, "a.eml", limits=Limits(ocr=False))
    text = text_of(document)
    assert "Attachments: contract.docx (application/octet-stream," in text
    for part in ("The rent is 900.", "a,b\n1,2\n", "Inner\nFrom: z@z\n\ninner body", "> quoted reply"):
        assert part in text
    titles = [(section.level, section.title) for section in document.sections]
    assert titles == [(1, "Files"), (2, "contract.docx"), (3, "Clause one"), (2, "data.csv"), (2, "Inner")]
    assert document.warnings == (
        "attachment pack.zip: left out: is a zip archive",
        "attachment logo.png: left out: is a PNG image",
    )


def test_a_mailbox_is_a_section_a_message(open_bytes: Open) -> None:
    data = (
        b"From a@b Mon Jan  1 00:00:00 2024\nSubject: One\n\nfirst\nFrom here it goes on\n\n"
        b"From c@d Tue Jan  2 00:00:00 2024\nSubject: Two\n\n>From the harbour\n\n>>From a quote\n"
    )
    document = open_bytes(data, "inbox")
    assert document.format == "mbox"
    assert [section.title for section in document.sections] == ["One", "Two"]
    assert text_of(document) == (
        "One\n\nfirst\nFrom here it goes on\n\nTwo\n\nFrom the harbour\n\n>From a quote\n\n"
    )


def test_a_paragraph_that_begins_with_from_stays_in_its_message(open_bytes: Open) -> None:
    body = (
        "first\n\nFrom Monday on the office is closed.\n\nFrom 12 May 2025 10:00 on\nHours: 9 to 5\n\n"
        "From me to you\nNote: all of it\n\nFrom a@b Mon Jan  1 00:00:00 2024\nwas quoted\n\n"
        "From a@b Mon Jan  1 00:00:00 2024\n\n"
    )
    second = "From - Tue Jan  2 00:00:00 2024\nSubject: Two\n\nend\n\nFrom c@d Mon Jan  1 00:00:00 2024"
    first = "From a@b Mon Jan  1 00:00:00 2024\nSubject: One\n\n"
    for data in (first + body + second, (first + body + second).replace("\n", "\r\n")):
        document = open_bytes(data.encode(), "inbox")
        assert [section.title for section in document.sections] == ["One", "Two"]
        end = "Two\n\nend\n\nFrom c@d Mon Jan  1 00:00:00 2024\n\n"
        assert text_of(document) == f"One\n\n{body}{end}"


def test_an_attachment_named_as_mail_that_is_none_keeps_its_lines(open_bytes: Open) -> None:
    data = HEADERS + mixed(PLAIN, attached("note.eml", b"Hours: 9 to 5\n\nClosed.\n"))
    assert "Hours: 9 to 5\n\nClosed." in text_of(open_bytes(data, "a.eml"))


def test_a_message_beyond_the_cap_is_cut_and_told(open_bytes: Open) -> None:
    data = b"From a@b Mon Jan  1 00:00:00 2024\nSubject: Long\n\n" + b"line of text\n" * 1000
    data += b"\nFrom a@b Mon Jan  1 00:00:00 2024\nSubject: Short\n\nend\n"
    document = open_bytes(data, "a.mbox", limits=Limits(tree_bytes=5000))
    assert [section.title for section in document.sections] == ["Long", "Short"]
    assert document.warnings == ("message 1 is larger than 5,000 bytes: only its beginning was read",)


def test_a_message_of_too_many_parts_is_read_as_it_is_written(open_bytes: Open) -> None:
    deep = b"inmost\n"
    for level in range(40):
        deep = mixed(deep, boundary=b"b%d" % level)
    cases = (
        (
            b'Content-Type: multipart/mixed; boundary="B"\n\n' + b"--B\n\n" * 10_000 + b"inmost",
            "10,000 parts",
        ),
        (deep, "nested more than 32 deep"),
        (b"Subject: x\n\ninmost" + b"\n" * 1_000_001, "1,000,000 lines"),
    )
    for data, why in cases:
        document = open_bytes(HEADERS + data, "a.eml")
        assert any(why in warning and "read as it is written" in warning for warning in document.warnings)
        assert "inmost" in text_of(document)


def test_nesting_has_a_lower_cap_where_lines_are_many() -> None:
    def nested(n_levels: int) -> bytes:
        data = b"x\n" * 900_000
        for level in range(n_levels):
            data = mixed(data, boundary=b"b%d" % level)
        return data

    assert parsed(nested(3)).is_multipart()
    with pytest.raises(LimitExceeded, match="nested more than 11 deep"):
        parsed(nested(14))


def test_a_header_is_kept_as_far_as_it_is_shown() -> None:
    message = parsed(b"Content-Type: text/plain" + b";" * 100_000 + b"\n\nx\n")
    assert len(message["Content-Type"]) < 21_000
    assert message.get_content_type() == "text/plain"


def test_a_message_inside_a_message_has_its_size(open_bytes: Open) -> None:
    inner = b"Subject: Inner\nFrom: z@z\n\n" + b"word " * 1000
    data = HEADERS + mixed(PLAIN, b"Content-Type: message/rfc822\n\n" + inner + b"\n")
    assert "message (message/rfc822, 5.0 kB)" in text_of(open_bytes(data, "a.eml"))


def test_hostile_messages_are_read_without_harm(open_bytes: Open) -> None:
    deep = b"x\n"
    for level in range(200):
        deep = mixed(deep, boundary=b"b%d" % level)
    assert open_bytes(HEADERS + deep, "deep.eml").format == "eml"
    words = b"Subject: " + b"=?utf-8?q?" * 20_000 + b"\n\nbody\n"
    assert "body" in text_of(open_bytes(words, "words.eml"))
    odd = b'Content-Type: text/plain; charset="no-such"\nContent-Transfer-Encoding: base64\n\n!!!\nbody\n'
    assert open_bytes(HEADERS + odd, "odd.eml").format == "eml"
