// A Telegram Bot API for tests: the npm package telegram-test-api, as it is. Knows getMe, sendMessage, getUpdates and a few more.
// Listens on 127.0.0.1, prints {"port": N} as soon as it does, and ends when its standard input closes. Its calls for tests are
// POST /sendMessage (what a user writes) and POST /getUpdatesHistory (what the bot sent).
const net = require("node:net");
const { createRequire } = require("node:module");

const TelegramServer = createRequire(process.argv[2] + "/")("telegram-test-api");

// It cannot listen on any free port by itself.
const probe = net.createServer().listen(0, "127.0.0.1", () => {
  const { port } = probe.address();
  probe.close(async () => {
    const server = new (TelegramServer.TelegramServer ?? TelegramServer.default ?? TelegramServer)({ port, host: "127.0.0.1" });
    await server.start();
    console.log(JSON.stringify({ port }));
  });
});
process.stdin.resume().on("end", () => process.exit(0));
