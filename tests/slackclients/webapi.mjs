// @slack/web-api as the app and as a user. The Go test has switched on a 429, then a lost
// answer, for the first posts.
import { WebClient } from '@slack/web-api'
import { otherToken, slackApiUrl, tell, token } from './lines.mjs'

const options = { slackApiUrl, logLevel: 'error', retryConfig: { retries: 1, minTimeout: 10 } }
const app = new WebClient(token, options), alice = new WebClient(otherToken, options)
const channel = 'C1', result = {}
const errorOf = async promise => { try { await promise; return '' } catch (error) { return error.data?.error ?? String(error) } }

result.bot = (await app.auth.test()).bot_id
const root = (await alice.chat.postMessage({ channel, text: 'question' })).ts // after a 429
const post = await app.chat.postMessage({ channel, thread_ts: root, text: 'twice', metadata: { event_type: 'd', event_payload: { n: 1 } } }) // answer lost: the client posts again
result.updated = (await app.chat.update({ channel, ts: post.ts, text: 'edited' })).text
result.notMine = await errorOf(app.chat.update({ channel, ts: root, text: 'x' }))
result.tooLong = await errorOf(app.chat.postMessage({ channel, markdown_text: 'x'.repeat(12001) }))
result.truncated = (await app.chat.postMessage({ channel, thread_ts: root, text: 'x'.repeat(40001) })).warning

const stream = app.chatStream({ channel, thread_ts: root, recipient_team_id: process.env.SLACK_TEAM, recipient_user_id: process.env.SLACK_USER })
await stream.append({ markdown_text: 'a'.repeat(300) })
const stopped = await stream.stop({ markdown_text: 'b' })
result.streamed = stopped.message.text.length
result.expired = await errorOf(app.chat.appendStream({ channel, ts: stopped.ts, markdown_text: 'x' }))

result.texts = []
for await (const page of app.paginate('conversations.replies', { channel, ts: root, limit: 2, include_all_metadata: true })) result.texts.push(...page.messages.map(m => m.text.slice(0, 8)))

const oauth = { client_id: '1.1', client_secret: 'client-secret' }
const installed = await new WebClient('', options).oauth.v2.access({ ...oauth, code: process.env.SLACK_CODE, redirect_uri: process.env.SLACK_REDIRECT })
result.installed = (await new WebClient(installed.access_token, options).auth.test()).team
tell(result)
