// An app of @slack/bolt: answers mentions by a stream and a question with a button.
import bolt from '@slack/bolt'
import { slackApiUrl, tell, token } from './lines.mjs'

const { App } = bolt
const signingSecret = process.env.SLACK_SIGNING_SECRET
const app = new App({ token, signingSecret, endpoints: ['/slack/events', '/slack/interactions', '/slack/commands'], clientOptions: { slackApiUrl }, logLevel: 'error' })
const button = { type: 'button', action_id: 'approve', value: 'id-1', text: { type: 'plain_text', text: 'Approve' } }

app.message(async ({ message }) => { if (!message.subtype) tell({ message: message.text }) }) // Bolt passes changes of the app's own messages
app.event('app_mention', async ({ event, client, context, say }) => {
  const thread_ts = event.thread_ts ?? event.ts
  await client.agents.sessions.setStatus({ channel_id: event.channel, thread_ts, status: 'processing' })
  const streamer = client.chatStream({ channel: event.channel, thread_ts, recipient_team_id: context.teamId, recipient_user_id: event.user })
  await streamer.append({ markdown_text: '**one** ' })
  await streamer.append({ chunks: [{ type: 'task_update', id: 't1', title: 'Calculator', status: 'complete' }] })
  await streamer.stop({ markdown_text: 'two' })
  const { ts } = await say({ thread_ts, text: 'May I?', blocks: [{ type: 'actions', elements: [button] }] })
  tell({ mention: event.text, retry: context.retryNum ?? 0, question: ts })
})
app.command('/context', async ({ ack, command, respond }) => {
  await ack()
  await respond({ text: `context for ${command.user_name}` })
  tell({ command: command.command })
})
app.action('approve', async ({ ack, action }) => {
  await ack()
  tell({ action: action.value })
})
app.shortcut('show_context', async ({ ack, shortcut }) => {
  await ack()
  tell({ shortcut: shortcut.callback_id })
})

const server = await app.start(0)
tell({ port: server.address().port })
