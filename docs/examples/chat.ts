// A web chat: streaming, reconnecting, a queue, stop and approvals. Copy it, and draw
// chat.list() whenever it calls changed(). It needs fetch, so a browser or Node.
export type Message = { id: string; seq: number; role: string; content: string; status: string; run_id?: string; revised_at?: string; deleted_at?: string }
export type Approval = { id: string; run_id: string; tool: string; arguments: string; status: string }

export class Chat {
  status = 'idle' // queued, running, waiting
  approvals = new Map<string, Approval>() // open questions
  private messages = new Map<string, Message>() // those with seq 0 are streaming or queued
  private run = '' // the active run
  private last = -1 // number of the last event; -1 = load everything
  private closed = new AbortController()

  constructor(private api: string, private session: string, private headers: Record<string, string> = {}, private changed = () => {}) {}

  // list returns the conversation: what is in the log, then the streaming answer, then the queue.
  list(): Message[] {
    const place = (m: Message) => m.seq || (m.role === 'assistant' ? 1e15 : 2e15)
    return [...this.messages.values()].sort((a, b) => place(a) - place(b))
  }

  async send(content: string): Promise<void> {
    await this.call('POST', `/sessions/${this.session}/messages`, { content, client_message_id: crypto.randomUUID(), multitask: 'enqueue' })
  }

  stop = () => this.call('POST', `/runs/${this.run}/cancel`, {})
  decide = (a: Approval, decision: 'approve' | 'deny') => this.call('POST', `/runs/${a.run_id}/approvals/${a.id}`, { decision })
  close = () => this.closed.abort()

  // follow keeps the conversation up to date until close, whatever happens to the connection.
  async follow(): Promise<void> {
    while (!this.closed.signal.aborted) {
      try {
        if (this.last < 0) await this.load()
        const answer = await fetch(`${this.api}/sessions/${this.session}/events?after=${this.last}`, { headers: this.headers, signal: this.closed.signal })
        if (!answer.ok) throw new Error(await answer.text())
        let rest = ''
        for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream()) as unknown as AsyncIterable<string>) {
          const frames = (rest + chunk).split('\n\n')
          rest = frames.pop()!
          for (const frame of frames) if (this.last >= 0) this.frame(frame)
          this.changed()
          if (this.last < 0) break
        }
      } catch { /* come back */ }
      if (this.last >= 0) await new Promise(again => setTimeout(again, 200 + 300 * Math.random()))
    }
  }

  private async load(): Promise<void> {
    const log = new Map<string, Message>()
    let first = -1
    for (let cursor = ''; ;) {
      const page = await this.call('GET', `/sessions/${this.session}/messages?limit=200${cursor && '&cursor=' + cursor}`)
      for (const m of [...page.items, ...page.pending]) log.set(m.id, m)
      if (first < 0) first = page.last_event_id
      if (!(cursor = page.next_cursor ?? '')) break
    }
    const session = await this.call('GET', `/sessions/${this.session}`)
    const run = session.open_approvals ? await this.call('GET', `/runs/${session.active_run_id}`) : {}
    this.approvals = new Map((run.approvals ?? []).map((a: Approval) => [a.id, a]))
    this.messages = log
    this.status = session.status
    this.run = session.active_run_id ?? ''
    this.last = first
  }

  private frame(text: string): void {
    const fields = Object.fromEntries(text.split('\n').map(line => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]))
    const data = fields.data && JSON.parse(fields.data), id = data?.message_id, draft = this.messages.get(id)
    if (fields.id) this.last = Number(fields.id)
    switch (fields.event) {
      case 'message.started': this.messages.set(id, { id, seq: 0, role: data.role, content: '', status: 'partial', run_id: data.run_id }); break
      case 'message.delta': if (draft) draft.content = draft.content.slice(0, data.offset_utf16) + data.text; break
      case 'message.discarded': this.messages.delete(id); break
      case 'run.queued': case 'message.created': case 'message.updated':
        data.message.deleted_at ? this.messages.delete(data.message.id) : this.messages.set(data.message.id, data.message); break
      case 'run.started': this.status = 'running'; this.run = data.run_id; break
      case 'run.waiting': this.status = 'waiting'; break
      case 'approval.requested': this.approvals.set(data.approval.id, data.approval); break
      case 'approval.decided': this.approvals.delete(data.approval.id); this.status = 'running'; break
      case 'run.succeeded': case 'run.failed': case 'run.canceled':
        this.status = 'idle'
        for (const m of this.messages.values()) if (!m.seq && m.run_id === data.run_id) this.messages.delete(m.id)
        break
      case 'session.updated': if (data.path) this.last = -1; break // another branch
      case 'resync': this.last = -1
    }
  }

  private async call(method: string, path: string, body?: object): Promise<any> {
    const headers = { ...this.headers, ...(body && { 'Content-Type': 'application/json', Prefer: 'respond-async' }) }
    const answer = await fetch(this.api + path, { method, headers, body: body && JSON.stringify(body), signal: this.closed.signal })
    if (!answer.ok) throw new Error((await answer.json()).detail)
    return answer.json()
  }
}
