"""A foreign reader and writer of WhatsApp's wire format, on pywa.

It reads one JSON object per line on standard input, answers each with one on standard output, and ends when its
input closes. What `do` says:

- `verify`: `secret`, `signature` (the header) and `body` (base64). Answers `{"valid": bool}`, as pywa's validator says;
- `sign`: `secret` and `body`. Answers `{"signature": ...}`, a header that pywa's validator takes;
- `read`: `body`, a callback of Meta's. Answers the one update that pywa makes of it, as `{"kind": ..., ...}`;
- `messages`: answers what pywa posts to send each of the messages below, by name;
- `templates`: answers what pywa submits for each of the templates below, by name;
- `errors`: `codes`. Answers pywa's class of each code and the classes above it.
"""

import base64
import hashlib
import hmac
import json
import logging
import sys

from pywa import WhatsApp, errors, handlers, types
from pywa.types import templates as t
from pywa.utils import webhook_updates_validator

TO = "34600111222"
LINK = "https://x.example/a.png"


def client():
    return WhatsApp(phone_id="106540352242922", token="token", validate_updates=False, skip_duplicate_updates=False)


def verify(ask):
    return {"valid": webhook_updates_validator(ask["secret"], base64.b64decode(ask["body"]), ask["signature"])}


def sign(ask):
    digest = hmac.new(ask["secret"].encode(), base64.b64decode(ask["body"]), hashlib.sha256).hexdigest()
    ask["signature"] = f"sha256={digest}"
    if not verify(ask)["valid"]:
        raise ValueError("pywa does not take the signature")
    return {"signature": ask["signature"]}


def read(ask):
    seen = []
    wa = client()
    wa.add_handlers(
        handlers.MessageHandler(lambda _, m: seen.append(message(m))),
        handlers.MessageStatusHandler(lambda _, s: seen.append(status(s))),
        handlers.CallbackButtonHandler(lambda _, b: seen.append({**user(b, "button"), "id": b.data, "title": b.title})),
        handlers.CallbackSelectionHandler(lambda _, b: seen.append({**user(b, "row"), "id": b.data, "title": b.title})),
    )
    wa.webhook_update_handler(base64.b64decode(ask["body"]))
    if len(seen) != 1:
        raise ValueError(f"pywa made {len(seen)} updates of one")
    return seen[0]


def user(update, kind):
    reply = getattr(update, "reply_to_message", None)
    return {
        "kind": kind,
        "message": update.id,
        "from": update.from_user.wa_id,
        "name": update.from_user.name,
        "at": int(update.timestamp.timestamp()),
        "replies_to": reply and reply.id,
    }


def message(update):
    out = {**user(update, str(update.type.value)), "text": update.text or update.caption}
    media = update.media
    if media:
        out["media"] = {"id": media.id, "type": media.mime_type, "filename": getattr(media, "filename", None)}
    if update.location:
        place = update.location
        out["place"] = [place.latitude, place.longitude, place.name, place.address]
    if update.contacts:
        out["cards"] = [[c.name.formatted_name, [p.phone for p in c.phones]] for c in update.contacts]
    if update.reaction:
        out["reaction"] = [update.reaction.message_id, update.reaction.emoji]
    return out


def status(update):
    return {
        "kind": "status",
        "message": update.id,
        "status": str(update.status.value),
        "at": int(update.timestamp.timestamp()),
        "tracker": update.tracker,
        "error": update.error and update.error.code,
    }


def messages(_):
    wa, posted = client(), []

    def request(method, endpoint, **rest):
        posted.append({"path": endpoint, "json": rest["json"]})
        return {"messages": [{"id": "wamid.X"}], "contacts": [{"input": TO, "wa_id": TO}], "success": True}

    wa.api._request = request
    card = types.Contact(
        name=types.Contact.Name(formatted_name="Ada", first_name="Ada"),
        phones=[types.Contact.Phone(phone="+34600111222")],
    )
    rows = [
        types.Section("A", [types.SectionRow("One", "1", "first")]),
        types.Section("B", [types.SectionRow("Two", "2")]),
    ]
    link = types.URLButton("Pay", "https://x.example/pay")
    us = t.TemplateLanguage.ENGLISH_US
    button = t.URLButton.params(url_variable="xyz", index=0)
    calls = {
        "text": lambda: wa.send_message(TO, "Hola"),
        "image": lambda: wa.send_image(TO, LINK, caption="See"),
        "video": lambda: wa.send_video(TO, "https://x.example/a.mp4"),
        "audio": lambda: wa.send_audio(TO, "1013859600285441"),
        "document": lambda: wa.send_document(TO, "https://x.example/a.pdf", filename="bill.pdf", caption="See"),
        "sticker": lambda: wa.send_sticker(TO, "1013859600285441"),
        "location": lambda: wa.send_location(TO, 40.5, -3.25, "Sol", "Plaza 1"),
        "contact": lambda: wa.send_contact(TO, card),
        "buttons": lambda: wa.send_message(
            TO, "Well?", footer="Acme", buttons=[types.Button("Yes", "y"), types.Button("No", "n")]
        ),
        "list": lambda: wa.send_message(TO, "Well?", footer="Acme", buttons=types.SectionList("Choose", rows)),
        "cta_text": lambda: wa.send_message(TO, "Well?", header="Bill", footer="Acme", buttons=link),
        "cta_image": lambda: wa.send_image(TO, LINK, caption="Well?", buttons=link),
        "reaction": lambda: wa.send_reaction(TO, "👍", "wamid.A"),
        "positional": lambda: wa.send_template(
            TO, "order", us, params=[t.HeaderImage.params(image=LINK), t.BodyText.params("Ada", "77"), button]
        ),
        "named": lambda: wa.send_template(
            TO, "order", us, params=[t.HeaderText.params(who="you"), t.BodyText.params(name="Ada", number="77")]
        ),
        "code": lambda: wa.send_template(
            TO,
            "code",
            t.TemplateLanguage.ENGLISH,
            params=[t.AuthenticationBody.params(otp="123456"), t.CopyCodeOTPButton.params(otp="123456")],
        ),
        "read": lambda: wa.mark_message_as_read("wamid.IN"),
    }
    for call in calls.values():
        call()
    return dict(zip(calls, posted, strict=True))


def templates(_):
    buttons = [
        t.URLButton(text="Track", url="https://x.example/{{1}}", example="https://x.example/example"),
        t.PhoneNumberButton(text="Call", phone_number="+34600111222"),
        t.QuickReplyButton(text="Thanks"),
    ]
    us, utility = t.TemplateLanguage.ENGLISH_US, t.TemplateCategory.UTILITY
    made = {
        "named": t.Template(
            name="order",
            language=us,
            category=utility,
            parameter_format=t.ParamFormat.NAMED,
            components=[
                t.HeaderText("News for {{who}}", who="who"),
                t.BodyText("Hi {{name}}, order {{order_number}} left.", name="name", order_number="order number"),
                t.FooterText(text="Acme"),
                t.Buttons(buttons=buttons),
            ],
        ),
        "positional": t.Template(
            name="order",
            language=us,
            category=utility,
            components=[t.HeaderText("News for {{1}}", "who"), t.BodyText("Hi {{1}}, {{2}}.", "Example 1", "Example 2")],
        ),
        "code": t.Template(
            name="code",
            language=t.TemplateLanguage.ENGLISH,
            category=t.TemplateCategory.AUTHENTICATION,
            components=[
                t.AuthenticationBody(add_security_recommendation=True),
                t.Buttons(buttons=[t.CopyCodeOTPButton(text="Copy")]),
            ],
        ),
    }
    return {name: json.loads(template.to_json()) for name, template in made.items()}


def classes(ask):
    names = {}
    for code in ask["codes"]:
        error = errors.WhatsAppError.from_dict({"code": code, "message": "m"})
        names[str(code)] = [c.__name__ for c in type(error).__mro__]
    return names


DO = {"verify": verify, "sign": sign, "read": read, "messages": messages, "templates": templates, "errors": classes}


def main():
    # A handler that fails is logged and swallowed by pywa; what it should have seen is then missing.
    logging.disable(logging.CRITICAL)
    for line in sys.stdin:
        ask = json.loads(line)
        print(json.dumps(DO[ask["do"]](ask)), flush=True)


if __name__ == "__main__":
    main()
