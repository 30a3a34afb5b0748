// The pictures of the README: a conversation in light, and its context in dark.
import { join } from 'node:path'

export const cases = {
  async readme(open, { dir, questions }) {
    const v = await open()
    await v.page.setViewportSize({ width: 1200, height: 720 })
    const id = await v.imported([], { title: 'Moving the workshop' })
    for (const content of questions) await v.api(`sessions/${id}/messages`, { method: 'POST', json: { content, source: 'web' } })
    await v.open(id)
    await v.articles.last().waitFor()
    await v.page.waitForTimeout(1000) // the meter has asked
    await v.page.screenshot({ path: join(dir, 'page-chat.png') })
    await v.page.emulateMedia({ colorScheme: 'dark' })
    await v.page.keyboard.press('Control+.')
    await v.page.getByRole('complementary', { name: /^Context/ }).getByText(/^v1, for/).first().waitFor()
    await v.page.screenshot({ path: join(dir, 'page-context.png') })
  },
}
