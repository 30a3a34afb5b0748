// @slack/socket-mode: acknowledges everything, and reconnects when it is told to.
import { SocketModeClient } from '@slack/socket-mode'
import { slackApiUrl, tell, token } from './lines.mjs'

const client = new SocketModeClient({ appToken: token, clientOptions: { slackApiUrl }, logLevel: 'error', clientPingTimeout: 500 })
client.on('connected', () => tell({ connected: true }))
client.on('slack_event', async ({ ack, type, body, retry_num }) => {
  await ack()
  tell({ type, text: body.event?.text ?? body.command ?? body.actions[0].value, retry: retry_num ?? 0 })
})
await client.start()
