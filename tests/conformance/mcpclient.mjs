// The npm package @modelcontextprotocol/client, with either revision of the protocol.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { serve } from './mcplines.mjs'

serve(async (call, options) => {
  const mode = call.revision < '2026' ? 'legacy' : { pin: call.revision }
  const client = new Client({ name: 'conformance', version: '2' }, { versionNegotiation: { mode } })
  await client.connect(new StreamableHTTPClientTransport(new URL(call.url), options))
  return client
}, (client, params, options) => client.callTool(params, options))
