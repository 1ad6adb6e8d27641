"""Uses a client generated from the OpenAPI document as an application would. Fails if anything is not as documented."""

import json
import os
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from http import HTTPStatus

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from nuncio_client import AuthenticatedClient
from nuncio_client.api.messages import get_message, list_messages, send_message
from nuncio_client.api.senders import list_senders, update_sender
from nuncio_client.models import (
    EventType,
    IdempotencyCode,
    InvalidRequestError,
    Message,
    MessageConflict,
    MessageDeliveredEvent,
    MessagePage,
    MessageResponse,
    MessageStatus,
    Metadata,
    NotFoundError,
    SendMessage,
    Sender,
    SenderPage,
    UpdateSender,
)
from nuncio_client.types import UNSET, Unset

TO = "+12125550123"
client = AuthenticatedClient(base_url=os.environ["NUNCIO_URL"], token=os.environ["NUNCIO_KEY"])
requests: list[tuple[dict[str, str], str]] = []


class Hook(BaseHTTPRequestHandler):
    """Listens for webhooks."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        requests.append(({name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


def wait(is_it: Callable[[str], bool]) -> tuple[dict[str, str], str]:
    """The first webhook whose body is accepted."""
    for _ in range(300):
        for headers, body in requests:
            if is_it(body):
                return headers, body
        time.sleep(0.1)
    raise AssertionError(f"no such webhook; got {requests}")


def set_webhook(url: str) -> str:
    senders = list_senders.sync(client=client)
    assert isinstance(senders, SenderPage), senders
    change = UpdateSender(webhook_url=url, webhook_events=[EventType.MESSAGE_DELIVERED])
    sender = update_sender.sync(senders.items[0].id, client=client, body=change)
    assert isinstance(sender, Sender), sender
    assert not isinstance(sender.webhook, Unset) and isinstance(sender.webhook.secret, str)
    return sender.webhook.secret


def message(text: str) -> SendMessage:
    return SendMessage(to=TO, text=text, metadata=Metadata.from_dict({"from": "python"}))


def send(text: str, key: str) -> Message:
    answer = send_message.sync_detailed(client=client, body=message(text), idempotency_key=key)
    assert answer.status_code == HTTPStatus.ACCEPTED and isinstance(answer.parsed, MessageResponse), answer
    return answer.parsed.message


def repeat(text: str, key: str) -> tuple[IdempotencyCode, str]:
    answer = send_message.sync_detailed(client=client, body=message(text), idempotency_key=key)
    assert answer.status_code == HTTPStatus.CONFLICT and isinstance(answer.parsed, MessageConflict), answer
    return answer.parsed.code, answer.parsed.message.id


def refuse() -> None:
    wrong = send_message.sync(client=client, body=SendMessage(to="nonsense", text="x"))
    assert isinstance(wrong, InvalidRequestError) and not isinstance(wrong.details.errors, Unset), wrong
    assert wrong.details.errors[0].path == "to", wrong
    missing = get_message.sync("msg_00000000000000000000000000", client=client)
    assert isinstance(missing, NotFoundError), missing


def list_all() -> list[str]:
    ids: list[str] = []
    cursor: str | Unset = UNSET
    while True:
        page = list_messages.sync(client=client, limit=2, cursor=cursor)
        assert isinstance(page, MessagePage), page
        ids.extend(item.id for item in page.items)
        if page.next_cursor is None:
            return ids
        cursor = page.next_cursor


def main() -> None:
    server = HTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    secret = set_webhook(f"http://127.0.0.1:{server.server_port}/hook")
    sent = [send(name, f"py-{name}").id for name in ("one", "two", "three")]
    assert repeat("one", "py-one") == (IdempotencyCode.IDEMPOTENCY_CONFLICT, sent[0])
    assert repeat("another", "py-one") == (IdempotencyCode.IDEMPOTENCY_KEY_REUSED, sent[0])
    refuse()
    assert list_all() == sent[::-1]

    headers, body = wait(lambda body: json.loads(body)["data"]["message"]["id"] == sent[0])
    event = MessageDeliveredEvent.from_dict(Webhook(secret).verify(body, headers))
    assert (event.type_, event.data.message.id, event.data.message.status) == ("message.delivered", sent[0], MessageStatus.DELIVERED)
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(body + " ", headers)
    server.shutdown()


main()
