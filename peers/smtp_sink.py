"""An SMTP server for tests, on aiosmtpd: takes mail in, or refuses it by recipient, and tells what it saw.

It listens on 127.0.0.1 and prints one JSON object per line on standard output:

- first `{"port": N}`, as soon as it listens;
- for each accepted mail, whether or not the client waits for the answer: `mailFrom`, `rcptTo` (accepted recipients
  only), `tls` (bool), `auth` (user name or null), `dkim`, `headers` (list of [name, decoded value]),
  `structure` (the MIME tree, such as `multipart/mixed(text/plain,image/png)`), `parts` (its leaves, in
  order: `contentType`, `disposition`, `filename`, `contentId`, `size` and `sha256` of the decoded bytes,
  `text` if text/*) and `raw_base64`. `dkim` is true or false for a signature that verifies or does not,
  null if there is none or --dkim is not given, "error" if the verifier itself failed;
- for each refused recipient `{"event": "rejected", "rcpt": ..., "code": ...}`;
- for each mail that a drop* recipient swallowed, the mail's object with `"event": "dropped"`.

What the local part of a recipient begins with (in lower case) decides its fate:

    nouser     550 5.1.1
    greyonce   451 4.7.1 the first time that this recipient is named, then accepted
    grey       451 4.7.1
    full       452 4.2.2
    drop       the connection closes after the mail was received, without an answer
    slow       the mail is accepted, and answered after 2 seconds

With --starttls, STARTTLS is offered, and AUTH (--auth) only after it. With --auth, mail without AUTH is
refused with 530. It ends when its standard input closes, so that it never outlives the test.
"""

import argparse
import asyncio
import base64
import email
import email.policy
import hashlib
import json
import logging
import os
import queue
import ssl
import sys
import threading

import dkim
from aiosmtpd.smtp import SMTP, AuthResult

REFUSALS = {
    "nouser": "550 5.1.1 No such user",
    "grey": "451 4.7.1 Greylisted, try again later",
    "full": "452 4.2.2 Mailbox full",
}


OUTPUT = queue.SimpleQueue()


def emit(record):
    OUTPUT.put(json.dumps(record).encode() + b"\n")


def write_output():
    """Writes until told None, on a thread of its own: a test may send a large mail before it reads."""
    while (line := OUTPUT.get()) is not None:
        while line:
            line = line[os.write(sys.stdout.fileno(), line) :]


def structure(part):
    if not part.is_multipart():
        return part.get_content_type()
    return f"{part.get_content_type()}({','.join(map(structure, part.get_payload()))})"


def leaves(message):
    if message.get_content_maintype() != "multipart" or not message.is_multipart():
        return [message]
    return [leaf for part in message.get_payload() for leaf in leaves(part)]


def describe(part):
    # An attached mail is a tree in itself: its bytes are what counts.
    data = part.get_payload(0).as_bytes() if part.is_multipart() else part.get_payload(decode=True)
    return {
        "contentType": part.get_content_type(),
        "disposition": part.get_content_disposition(),
        "filename": part.get_filename(),
        "contentId": part["content-id"],
        "size": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "text": part.get_content() if part.get_content_maintype() == "text" else None,
    }


def key_record(path):
    """The DNS TXT record for a public key, given as that record, as PEM, or as bare base64 (RSA)."""
    with open(path, encoding="ascii") as file:
        lines = [line.strip() for line in file if not line.startswith("-----")]
    text = "".join(lines)
    return (text if "p=" in text else f"v=DKIM1; k=rsa; p={text}").encode()


class Handler:
    def __init__(self, dkim_keys):
        self.dkim_keys = dkim_keys
        self.named = set()

    def refusal(self, address):
        local = address.lower()
        if local.startswith("greyonce"):
            first = local not in self.named
            self.named.add(local)
            return REFUSALS["grey"] if first else None
        return next((reply for prefix, reply in REFUSALS.items() if local.startswith(prefix)), None)

    async def handle_EHLO(self, server, session, envelope, hostname, responses):
        session.host_name = hostname
        # Without a password to check, AUTH is not offered at all.
        return [line for line in responses if line != "250-AUTH "]

    async def handle_RCPT(self, server, session, envelope, address, options):
        reply = self.refusal(address)
        if reply:
            emit({"event": "rejected", "rcpt": address, "code": int(reply[:3])})
            return reply
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 OK"

    async def handle_DATA(self, server, session, envelope):
        record = self.record(session, envelope)
        locals_ = [address.lower() for address in envelope.rcpt_tos]
        if any(local.startswith("drop") for local in locals_):
            emit({"event": "dropped", **record})
            server.transport.abort()
            # The lost connection cancels this task.
            await asyncio.Event().wait()
        emit(record)
        if any(local.startswith("slow") for local in locals_):
            await asyncio.sleep(2)
        return "250 2.0.0 Queued"

    def record(self, session, envelope):
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        return {
            "mailFrom": envelope.mail_from,
            "rcptTo": envelope.rcpt_tos,
            "tls": bool(session.ssl),
            "auth": session.auth_data if session.authenticated else None,
            "dkim": self.verify(envelope.content, message),
            "headers": [[name, str(value)] for name, value in message.items()],
            "structure": structure(message),
            "parts": [describe(part) for part in leaves(message)],
            "raw_base64": base64.b64encode(envelope.content).decode(),
        }

    def verify(self, content, message):
        if not self.dkim_keys or "dkim-signature" not in message:
            return None
        try:
            return dkim.verify(content, logger=logging.getLogger("dkim"), dnsfunc=self.lookup)
        except Exception:
            logging.exception("the DKIM verifier failed")
            return "error"

    def lookup(self, name, timeout=None):
        name = name.decode() if isinstance(name, bytes) else name
        return self.dkim_keys.get(name.rstrip("."))


def authenticator(expected):
    def check(server, session, envelope, mechanism, data):
        given = f"{data.login.decode()}:{data.password.decode()}"
        # handled=False leaves the refusal's answer (535) to aiosmtpd.
        return AuthResult(success=given == expected, handled=False, auth_data=data.login.decode())

    return check


def server_factory(args, handler):
    context = None
    if args.starttls:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*args.starttls)

    def create():
        return SMTP(
            handler,
            hostname="sink.test",
            data_size_limit=args.size_limit,
            enable_SMTPUTF8=True,
            tls_context=context,
            authenticator=authenticator(args.auth) if args.auth else None,
            auth_required=bool(args.auth),
            auth_require_tls=context is not None,
            auth_exclude_mechanism=[] if args.auth else ["LOGIN", "PLAIN"],
        )

    return create


async def serve(args):
    keys = {}
    if args.dkim:
        selector, domain, path = args.dkim
        keys[f"{selector}._domainkey.{domain}"] = key_record(path)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(server_factory(args, Handler(keys)), "127.0.0.1", args.port)
    emit({"port": server.sockets[0].getsockname()[1]})
    closed = asyncio.Event()

    def watch_stdin():
        while os.read(sys.stdin.fileno(), 4096):
            pass
        loop.call_soon_threadsafe(closed.set)

    threading.Thread(target=watch_stdin, daemon=True).start()
    await closed.wait()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, default=0, help="0, the default, takes any free one")
    parser.add_argument("--auth", metavar="USER:PASS", help="demand AUTH PLAIN or LOGIN")
    parser.add_argument("--starttls", nargs=2, metavar=("CERT", "KEY"), help="PEM files")
    parser.add_argument("--dkim", nargs=3, metavar=("SELECTOR", "DOMAIN", "PUBKEY_FILE"))
    parser.add_argument("--size-limit", type=int, default=45 * 2**20, metavar="BYTES")
    args = parser.parse_args()
    # Its warnings tell of choices made here on purpose.
    logging.getLogger("mail.log").setLevel(logging.ERROR)
    writer = threading.Thread(target=write_output, daemon=True)
    writer.start()
    asyncio.run(serve(args))
    OUTPUT.put(None)
    # Whoever closed our input may not read our output any more.
    writer.join(timeout=5)


if __name__ == "__main__":
    main()
