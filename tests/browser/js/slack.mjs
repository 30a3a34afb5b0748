// The thread of Slack beside a conversation: attached, repaired and detached.
import { check, equal, until } from './visit.mjs'

export const cases = {
  async slack(open, { link }) {
    const v = await open()
    const id = await v.imported([], { title: 'shown in Slack' })
    await v.open(id)
    await v.menu('Attach to Slack…')
    const panel = v.page.getByRole('complementary', { name: 'Slack' })
    const field = panel.getByRole('textbox', { name: 'Link to a message in Slack' })
    await field.fill('https://example.org/nothing')
    await v.button('Attach', panel).click()
    await panel.getByText('This is not the link to a message in Slack.').waitFor()
    await field.fill(link)
    await v.state('slack-attach')
    await v.button('Attach', panel).click()
    await panel.getByText('data-imports').waitFor()
    await panel.getByText('Connected').waitFor()
    check(await panel.getByRole('radio', { name: /^Post/ }).isChecked(), 'the mode is not the one that was chosen')

    // One is refused with its answer, of the next the answer is lost and the thread cannot be read.
    await v.control('slack', { method: 'chat.postMessage', error: 'is_archived', times: 2 })
    await v.button('Close', panel).click() // on phones it covers the thread
    await v.ask('first')
    await v.log.getByText('Not in Slack: the channel is archived').nth(1).waitFor()
    await v.control('slack', { method: 'conversations.replies', error: 'missing_scope' })
    await v.control('slack', { method: 'chat.postMessage', status: 502, times: 1 })
    await v.ask('second')
    await v.log.getByText('Perhaps in Slack').waitFor()
    await v.button('Details').first().click()
    await panel.getByText('“second”').waitFor()
    equal(await panel.locator('.quote').allTextContents(), ['“first”', '“answer to: first”', '“second”'], 'what is not in Slack, in the order in which it was said')
    await v.state('slack')

    // A look that Slack refuses does not mean that Bobbin is away.
    await v.button('Look in Slack', panel).click()
    await panel.getByRole('alert').getByText('Slack could not be looked at').waitFor()
    await panel.getByText(/^Slack does not show the thread \(missing_scope\)/).waitFor()
    await v.state('slack-not-looked')

    // It is looked for, found missing, and sent; the refused ones are sent again by their lines in the thread.
    await v.control('slack-clear')
    await v.button('Look in Slack', panel).click()
    await panel.getByText(/^Refused.*the thread does not have it/).waitFor()
    const german = await open({ locale: 'de-DE' })
    await german.open(id)
    await german.log.getByText('Nicht in Slack: im Thread steht es nicht').waitFor()
    await v.button('Try again', panel).last().click()
    await panel.getByText('“second”').waitFor({ state: 'detached' })
    await v.button('Close', panel).click()
    const again = v.log.getByRole('button', { name: 'Try again' })
    await again.last().click()
    await again.nth(1).waitFor({ state: 'detached' })
    await again.click()
    await v.log.getByText('Not in Slack').waitFor({ state: 'detached' })
    await v.menu('Slack')
    await panel.getByText('Nothing is left to post.').waitFor()

    // While Slack wants a pause, the panel and the message say that it waits.
    await v.control('slack', { method: 'chat.postMessage', error: 'ratelimited' })
    await v.api(`sessions/${id}/messages`, { method: 'POST', json: { content: 'third', source: 'web' } })
    await v.log.getByText('Waits for Slack').nth(1).waitFor() // the question and its answer
    await panel.getByText(/^Waits since.*Slack asked for a pause.*Next try in \d+ s/).waitFor()
    await v.state('slack-waits')
    // While a post is under way there is no reason, no next try and no line in the thread; of a channel that Slack does not name nobody knows.
    await v.page.route('**/slack', async route => { const status = await (await route.fetch()).json(); await route.fulfill({ json: { ...status, reason: '', channel_name: '' } }) }, { times: 1 })
    await panel.getByText(/^Waits since[^:]*:\d\d\.\s*$/).waitFor()
    equal(await panel.getByText('Connected').count(), 0, 'connected to an unknown channel')
    equal(await v.log.getByText('Waits for Slack').count(), 0, 'lines below messages whose posts are under way')
    await v.control('slack-clear')
    // A mode that is refused is not shown as if it was in use.
    await v.page.route('**/slack', route => (route.request().method() === 'PUT' ? route.fulfill({ status: 403, contentType: 'application/problem+json', body: JSON.stringify({ title: 'Forbidden', status: 403, code: 'forbidden', detail: 'not now' }) }) : route.fallback()))
    await panel.getByRole('radio', { name: /^Paused/ }).click()
    await panel.getByRole('alert').waitFor()
    check(await panel.getByRole('radio', { name: /^Post/ }).isChecked(), 'the refused mode looks chosen')
    await v.state('slack-refused')
    await v.page.unroute('**/slack')
    await v.button('Detach…', panel).click()
    check(await v.page.getByRole('dialog').getByRole('alert').count() === 0, 'the refused mode is said to be why nothing was detached')
    await v.button('Cancel').click()
    await panel.getByRole('radio', { name: /^Paused/ }).check()
    await panel.getByText('Nothing is posted in this mode.').waitFor()
    // The operation speaks of webhooks, and leads to what is in Slack: also where the list has other conversations only, and as it changes.
    for (let i = 0; i < 50; i++) await v.imported([])
    await v.page.goto(`${v.args.url}#/operation`)
    await v.page.reload()
    await v.page.getByText('All webhooks are through.').waitFor()
    const inSlack = v.page.getByText(/^Posts to Slack are not counted here/)
    await inSlack.getByRole('link', { name: 'shown in Slack' }).waitFor()
    const { team, channel, thread } = await v.api(`sessions/${id}/slack`)
    await v.api(`sessions/${id}/slack`, { method: 'DELETE' })
    await inSlack.waitFor({ state: 'detached' })
    await v.api(`sessions/${id}/slack`, { method: 'PUT', json: { team, channel, thread, mode: 'to_slack' } })
    await inSlack.getByRole('link', { name: 'shown in Slack' }).click()
    await v.menu('Slack')
    await v.button('Detach…', panel).click()
    await v.button('Detach', v.page.getByRole('dialog')).click()
    await field.waitFor()
    check(!(await v.api(`sessions/${id}`)).slack, 'the session is attached')
  },
}
