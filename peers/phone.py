"""A telephone by PJSIP: takes calls on 127.0.0.1 and records what it hears.

Usage: phone.py FILE [CODE [KEY [SECONDS [TLS]]]]

Answers each call with CODE (200 unless told), writes what it hears to FILE
(WAV, 16 kHz), presses KEY half a second after picking up, and hangs up SECONDS
after picking up. `-` leaves KEY out, 0 SECONDS. TLS is a folder with server.pem
and server.key: then it speaks SIP over TLS, else over UDP. Writes a line of JSON with its port, and
one for each call that ends. Ends with its standard input.
"""

import json
import os
import select
import sys
import time

import pjsua2 as pj

FILE = sys.argv[1]
CODE = int(sys.argv[2]) if len(sys.argv) > 2 else 200
KEY = sys.argv[3] if len(sys.argv) > 3 and sys.argv[3] != "-" else None
SECONDS = float(sys.argv[4]) if len(sys.argv) > 4 else 0
TLS = sys.argv[5] if len(sys.argv) > 5 else None


def tell(**event):
    print(json.dumps(event), flush=True)


class Call(pj.Call):
    recorder = None
    picked_up = None
    pressed = False

    def onCallState(self, _):
        info = self.getInfo()
        if info.state == pj.PJSIP_INV_STATE_DISCONNECTED:
            # Closes the file.
            self.recorder = None
            tell(event="ended", status=info.lastStatusCode, call_id=info.callIdString, remote=info.remoteUri)

    def onCallMediaState(self, _):
        # Kept: what `media` holds lives in it.
        info = self.getInfo()
        for index, media in enumerate(info.media):
            if media.type == pj.PJMEDIA_TYPE_AUDIO and media.status == pj.PJSUA_CALL_MEDIA_ACTIVE and not self.recorder:
                self.recorder = pj.AudioMediaRecorder()
                self.recorder.createRecorder(FILE)
                self.getAudioMedia(index).startTransmit(self.recorder)
                self.picked_up = time.monotonic()

    def pass_time(self):
        since = time.monotonic() - self.picked_up if self.picked_up else 0
        if KEY and since > 0.5 and not self.pressed:
            self.pressed = True
            self.dialDtmf(KEY)
        if SECONDS and since > SECONDS and self.isActive():
            self.picked_up = None
            self.hangup(pj.CallOpParam(True))


class Account(pj.Account):
    calls = []

    def onIncomingCall(self, incoming):
        call = Call(self, incoming.callId)
        self.calls.append(call)
        answer = pj.CallOpParam()
        answer.statusCode = CODE
        call.answer(answer)


def main():
    config = pj.EpConfig()
    config.uaConfig.threadCnt = 0
    config.uaConfig.mainThreadOnly = True
    config.logConfig.level = config.logConfig.consoleLevel = 1
    config.medConfig.noVad = True
    endpoint = pj.Endpoint()
    endpoint.libCreate()
    endpoint.libInit(config)
    endpoint.audDevManager().setNullDev()
    transport = pj.TransportConfig()
    transport.boundAddress = "127.0.0.1"
    if TLS:
        transport.tlsConfig.certFile = f"{TLS}/server.pem"
        transport.tlsConfig.privKeyFile = f"{TLS}/server.key"
    number = endpoint.transportCreate(pj.PJSIP_TRANSPORT_TLS if TLS else pj.PJSIP_TRANSPORT_UDP, transport)
    endpoint.libStart()
    account = Account()
    settings = pj.AccountConfig()
    settings.idUri = "sip:phone@127.0.0.1"
    settings.mediaConfig.transportConfig.boundAddress = "127.0.0.1"
    settings.mediaConfig.transportConfig.port = 27200
    settings.mediaConfig.transportConfig.portRange = 200
    account.create(settings)
    tell(port=int(endpoint.transportGetInfo(number).localAddress.rsplit(":", 1)[1]))
    while not select.select([sys.stdin], [], [], 0)[0]:
        endpoint.libHandleEvents(20)
        for call in account.calls:
            call.pass_time()
    # Taking all apart in order is not worth the trouble: files are closed when calls end.
    os._exit(0)


main()
