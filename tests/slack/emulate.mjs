// emulate's Slack: a team with a channel, Alice, and an app with a bot, which is installed. It prints its
// address, and ends with its standard input.
import { createEmulator } from 'emulate'
import { createServer } from 'node:net'

const [token, otherToken] = process.argv.slice(2)
process.stdin.resume().on('end', () => process.exit(0))

const port = await new Promise(done => { const s = createServer().listen(0, '127.0.0.1', () => { const { port } = s.address(); s.close(() => done(port)) }) })
const app = { app_id: 'A0001', client_id: '1.1', bot_id: 'B0001', bot_user_id: 'U0001BOT' }
const server = await createEmulator({ service: 'slack', port, baseUrl: `http://127.0.0.1:${port}`, seed: { slack: {
  users: [{ name: 'alice', real_name: 'Alice Lee', email: 'alice@example.org' }],
  oauth_apps: [{ ...app, client_secret: 's', name: 'bobbin', bot_name: 'bobbin', redirect_uris: [], scopes: ['chat:write', 'channels:history', 'channels:read', 'users:read'] }],
  tokens: [{ ...app, token, type: 'bot', user_id: app.bot_user_id }, { token: otherToken, user: 'alice', type: 'user' }],
} } })
console.log(server.url)
