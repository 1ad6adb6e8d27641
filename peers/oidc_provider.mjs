// A certified OpenID provider (npm oidc-provider) for tests: whoever signs in is who they say, by the name that they enter.
//   node peers/oidc_provider.mjs MODULES REDIRECT_URI
// MODULES: the folder with node_modules. Prints one line of JSON: {"issuer": …}. Names that begin with `unverified` have an address that
// was not verified, and `nameless` has none.
import { createRequire } from 'node:module';
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';

const [modules, redirect] = process.argv.slice(2);
const found = createRequire(pathToFileURL(`${modules}/package.json`)).resolve('oidc-provider');
const { default: Provider } = await import(pathToFileURL(found));

const server = createServer();
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;
const provider = new Provider(issuer, {
  clients: [{ client_id: 'nuncio', client_secret: 'a secret of the provider', redirect_uris: [redirect] }],
  claims: { openid: ['sub'], email: ['email', 'email_verified'] },
  pkce: { required: () => true },
  async findAccount(_ctx, id) {
    const email = id === 'nameless' ? {} : { email: id, email_verified: !id.startsWith('unverified') };
    return { accountId: id, claims: async () => ({ sub: id, ...email }) };
  },
});
server.on('request', provider.callback());
console.log(JSON.stringify({ issuer }));
