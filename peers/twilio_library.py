"""Twilio's own client library as a peer: it signs callbacks, writes TwiML, and makes the requests that ours are held against.

Reads one JSON object a line on standard input and answers with one on standard output; ends when standard input closes.

    {"sign": {"url": ..., "params": {...}}}                   -> {"signature": ...}
    {"twiml": {"say": ..., "play": ..., "repeat": n, ...}}    -> {"twiml": ..., "canonical": ...}
    {"canonical": "<xml>"}                                    -> {"canonical": ...}
    {"messages": {...}} or {"calls": {...}}                   -> {"method": ..., "url": ..., "form": [[name, value], ...], "authorization": [sid, token]}

The arguments of the last two are those of client.messages.create and client.calls.create.
"""

import json
import logging
import sys
import xml.etree.ElementTree as xml

from twilio.http import HttpClient
from twilio.http.response import Response
from twilio.request_validator import RequestValidator
from twilio.rest import Client
from twilio.twiml.voice_response import VoiceResponse

SID = "AC00000000000000000000000000000001"
TOKEN = "0123456789abcdef-auth-token"


class Recorder(HttpClient):
    """Keeps the request instead of sending it."""

    def __init__(self):
        super().__init__(logging.getLogger(), is_async=False)

    def request(self, method, url, params=None, data=None, headers=None, auth=None, timeout=None, allow_redirects=False):
        form = []
        for name, value in (data or {}).items():
            form += [[name, one] for one in (value if isinstance(value, list) else [value])]
        self.seen = {"method": method, "url": url, "form": sorted([n, str(v)] for n, v in form), "authorization": auth}
        return Response(201, json.dumps({"sid": "SM1", "status": "queued"}))


def twiml(ask):
    response = VoiceResponse()
    for number in range(ask["repeat"]):
        if number:
            response.pause(length=1)
        if "say" in ask:
            more = {"voice": ask["voice"]} if "voice" in ask else {}
            response.say(ask["say"], language=ask["language"], **more)
        if "play" in ask:
            response.play(ask["play"])
    return str(response)


def answer(ask):
    if "sign" in ask:
        return {"signature": RequestValidator(TOKEN).compute_signature(ask["sign"]["url"], ask["sign"]["params"])}
    if "twiml" in ask:
        text = twiml(ask["twiml"])
        return {"twiml": text, "canonical": xml.canonicalize(text)}
    if "canonical" in ask:
        return {"canonical": xml.canonicalize(ask["canonical"])}
    recorder = Recorder()
    client = Client(SID, TOKEN, http_client=recorder)
    what = "messages" if "messages" in ask else "calls"
    getattr(client, what).create(**ask[what])
    return recorder.seen


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
