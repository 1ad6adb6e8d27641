// An SMSC for tests, on the npm package smpp: takes messages, tells what it saw, and delivers receipts and messages from outside.
//
//     node smsc.js MODULES      MODULES is the folder in which node_modules lies
//
// It listens on 127.0.0.1 and prints one JSON object a line on standard output: first {"port": N}, then everything that it sees. The
// password is "secret08". What a recipient ends with decides its fate:
//
//     000    ESME_RINVDSTADR
//     058    ESME_RTHROTTLED
//     005    a receipt that says UNDELIV, error 34
//     other  a receipt that says DELIVRD
//
// A text "reply WORDS" is answered by its recipient with WORDS, "reply long WORDS" in two parts. Receipts leave at once, often before
// the sender has read the answer. With "hush" on standard input it answers no submit_sm any more. It ends when standard input closes.
const { createRequire } = require("node:module");
const readline = require("node:readline");

const smpp = createRequire(process.argv[2] + "/")("smpp");

const say = (seen) => console.log(JSON.stringify(seen));
let count = 0;
let hush = false;

function text(pdu) {
  const part = pdu.message_payload && pdu.message_payload.message ? pdu.message_payload : pdu.short_message;
  return part && part.message !== undefined ? part.message : "";
}

function receipt(session, pdu, id) {
  const fails = pdu.destination_addr.endsWith("005");
  const [stat, state, error] = fails ? ["UNDELIV", 5, "034"] : ["DELIVRD", 2, "000"];
  const dlvrd = fails ? "000" : "001";
  session.deliver_sm(
    {
      esm_class: smpp.ESM_CLASS.MC_DELIVERY_RECEIPT,
      source_addr: pdu.destination_addr,
      destination_addr: pdu.source_addr,
      receipted_message_id: id,
      message_state: state,
      short_message: `id:${id} sub:001 dlvrd:${dlvrd} submit date:2611210900 done date:2611210901 stat:${stat} err:${error} text:`,
    },
    (answer) => say({ event: "receipt_answered", id, status: answer.command_status }),
  );
}

function reply(session, pdu, words) {
  const back = { source_addr: pdu.destination_addr, source_addr_ton: 1, source_addr_npi: 1, destination_addr: pdu.source_addr };
  const tell = (answer) => say({ event: "message_answered", status: answer.command_status });
  const long = words.startsWith("long ") ? words.slice(5) : null;
  if (long === null) {
    session.deliver_sm({ ...back, short_message: words }, tell);
    return;
  }
  const middle = Math.floor(long.length / 2);
  [long.slice(middle), long.slice(0, middle)].forEach((message, index) => {
    const udh = Buffer.from([5, 0, 3, 77, 2, 2 - index]);
    session.deliver_sm({ ...back, esm_class: smpp.ESM_CLASS.UDH_INDICATOR, short_message: { udh, message } }, tell);
  });
}

const server = smpp.createServer((session) => {
  session.on("error", (error) => say({ event: "error", error: String(error) }));
  session.on("close", () => say({ event: "closed" }));
  for (const kind of ["bind_transceiver", "bind_transmitter", "bind_receiver"]) {
    session.on(kind, (pdu) => {
      const right = pdu.password === "secret08";
      say({ event: kind, systemId: pdu.system_id, systemType: pdu.system_type, version: pdu.interface_version, right });
      session.send(pdu.response(right ? { system_id: "peer" } : { command_status: smpp.ESME_RINVPASWD }));
      if (!right) session.close();
    });
  }
  session.on("enquire_link", (pdu) => session.send(pdu.response()));
  session.on("unbind", (pdu) => {
    say({ event: "unbind" });
    session.send(pdu.response());
    session.close();
  });
  session.on("submit_sm", (pdu) => {
    const id = `peer-${++count}`;
    const udh = pdu.short_message && pdu.short_message.udh;
    say({
      event: "submit_sm",
      id,
      source: [pdu.source_addr_ton, pdu.source_addr_npi, pdu.source_addr],
      destination: [pdu.dest_addr_ton, pdu.dest_addr_npi, pdu.destination_addr],
      dataCoding: pdu.data_coding,
      esmClass: pdu.esm_class,
      registeredDelivery: pdu.registered_delivery,
      udh: udh ? [].concat(udh).map((part) => part.toString("hex")) : null,
      sar: pdu.sar_total_segments ? [pdu.sar_total_segments, pdu.sar_segment_seqnum] : null,
      text: text(pdu),
    });
    if (hush) return;
    if (pdu.destination_addr.endsWith("000")) return session.send(pdu.response({ command_status: smpp.ESME_RINVDSTADR }));
    if (pdu.destination_addr.endsWith("058")) return session.send(pdu.response({ command_status: smpp.ESME_RTHROTTLED }));
    session.send(pdu.response({ message_id: id }));
    if (pdu.registered_delivery & 1) receipt(session, pdu, id);
    const words = /^reply (.*)$/s.exec(text(pdu));
    if (words) reply(session, pdu, words[1]);
  });
});

server.listen(0, "127.0.0.1", () => say({ port: server.address().port }));
readline
  .createInterface({ input: process.stdin })
  .on("line", (line) => {
    hush = line === "hush";
    say({ event: line });
  })
  .on("close", () => process.exit(0));
