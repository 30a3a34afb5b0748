// People of the workspace as @slack/web-api: makes the calls that the Go test writes, a line each.
import { createInterface } from 'node:readline'
import { WebClient } from '@slack/web-api'
import { slackApiUrl, tell } from './lines.mjs'

const clients = {}
const clientOf = token => clients[token] ??= new WebClient(token, { slackApiUrl, logLevel: 'error', retryConfig: { retries: 0 } })
const lines = createInterface({ input: process.stdin })
lines.on('line', async line => {
  const { id, token, method, args } = JSON.parse(line)
  const client = clientOf(token)
  try {
    if (method === 'conversations.replies') {
      const messages = []
      for await (const page of client.paginate(method, { ...args, limit: 3 })) messages.push(...page.messages)
      tell({ id, messages })
    } else if (method === 'files.uploadV2') {
      tell({ id, ok: (await client.files.uploadV2(args)).ok })
    } else {
      tell({ id, ...await client.apiCall(method, args) })
    }
  } catch (error) { tell({ id, error: error.data?.error ?? String(error) }) }
})
tell({ ready: true })
