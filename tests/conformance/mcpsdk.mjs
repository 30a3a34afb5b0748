// The npm package @modelcontextprotocol/sdk, which most hosts of today have.
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { serve } from './mcplines.mjs'

serve(async (call, options) => {
  const client = new Client({ name: 'conformance', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(call.url), options))
  return client
}, (client, params, options) => client.callTool(params, undefined, options))
