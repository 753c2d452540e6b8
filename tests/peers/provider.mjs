// An OpenID Connect provider that keeps to the standard: it refuses prompts that it does not know,
// and says e-mail addresses at UserInfo alone.
// node provider.mjs PORT CALLBACK
import Provider from 'oidc-provider';

const [port, callback] = process.argv.slice(2);
const issuer = `http://localhost:${port}`;
const provider = new Provider(issuer, {
  clients: [{
    client_id: 'spanlab',
    client_secret: 'secret',
    redirect_uris: [callback],
    post_logout_redirect_uris: [callback],
  }],
  cookies: { keys: ['a key for tests alone'] },
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
  findAccount: (_context, id) => ({
    accountId: id,
    claims: () => ({ sub: id, name: id, email: `${id}@example.org`, email_verified: true }),
  }),
});
provider.listen(Number(port));
