// What somebody with a keyboard or a screen reader gets.
import { check, equal, until } from './visit.mjs'

const rich = '# A heading\n\nA [link](https://example.org) and `code`.\n\n```js\nconst a = 1 // remark\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- one\n- [ ] two\n\n> said'

export const cases = {
  /** The states in one theme and width. CI looks at those that differ most, and at the other theme, too, which has colors
   *  of its own and nothing else. */
  async audit(open, { theme, width, long }) {
    const v = await open({ theme, width })
    const look = async (state, main) => {
      await v.state(state, { main })
      if (long || !main) return
      await v.page.emulateMedia({ colorScheme: theme === 'dark' ? 'light' : 'dark' })
      await v.state(state, { main, rules: ['color-contrast'] })
      await v.page.emulateMedia({ colorScheme: theme })
    }
    await v.field.waitFor()
    await look('empty')
    const id = await v.imported([
      { role: 'user', content: 'draw everything' }, { role: 'assistant', content: rich }, { role: 'user', content: 'use a tool' },
      { role: 'assistant', content: '', tool_calls: [{ id: 'c1', type: 'function', function: { name: 'calculator', arguments: '{"expression":"6*7"}' } }] },
      { role: 'tool', tool_call_id: 'c1', content: '42' }, { role: 'assistant', content: 'It is 42.', parts: [{ type: 'reasoning', text: 'Six times seven.' }] },
    ], { agent: 'careful', title: 'everything at once' })
    await v.open(id)
    await v.settled('It is 42.')
    const thoughts = v.log.getByText('Six times seven.')
    equal(await thoughts.count(), 0, 'thoughts that are folded')
    await v.log.evaluate(e => e.querySelectorAll('details').forEach(d => { d.open = true }))
    await thoughts.waitFor()
    await look('chat', true)
    await v.page.getByRole('button', { name: /^Context: / }).click()
    await v.page.getByRole('complementary', { name: /^Context of/ }).getByRole('meter').or(v.page.getByText('0 lost')).first().waitFor()
    await look('context-new', true)
    await v.page.keyboard.press('Escape')
    if (long) {
      await v.page.keyboard.press('Alt+3')
      await v.page.getByRole('region', { name: 'The prompt, word for word' }).waitFor()
      await look('prompt')
      await v.page.keyboard.press('Alt+1')
      await v.page.keyboard.press('Control+k')
      await v.page.getByRole('combobox').fill('everything')
      await v.page.getByRole('option').first().waitFor()
      await look('search')
      await v.page.keyboard.press('Escape')
    }
    await v.send('calculate this')
    await v.page.getByRole('region', { name: /^Question/ }).waitFor()
    await look('approval', true)
    await v.button('Approve').click()
    await v.settled('answer to: calculate this')
    if (!long) return
    await look('approved')
    await v.page.keyboard.press('Alt+2')
    await v.page.getByRole('row', { name: /llm_node/ }).nth(1).waitFor()
    await look('runs')
    await v.page.keyboard.press('Alt+1')
    await v.button('More', v.page.getByRole('main')).click()
    await look('menu')
    await v.page.keyboard.press('Escape')
    for (const [tab, part] of [['', 'Overview'], ['/usage', 'Usage'], ['/memories', 'Memories']]) {
      await v.page.goto(`${v.args.url}#/operation${tab}`)
      await v.page.getByRole('region', { name: part, exact: true }).first().waitFor()
      await look(`operation${tab}`)
    }
    await v.open(id)
    await v.menu(/Slack/)
    await v.page.getByRole('complementary', { name: 'Slack' }).getByRole('textbox').first().waitFor()
    await look('slack')
    await v.page.keyboard.press('Escape')
    await v.page.getByRole('button', { name: /^Model: / }).click()
    await v.page.getByRole('menuitemradio', { name: /smaller/ }).click()
    await v.page.getByRole('dialog', { name: /^Switch to smaller/ }).waitFor()
    await v.button('Switch').waitFor()
    await look('switch')
    await v.page.keyboard.press('Escape')
    check(await v.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'the page is wider than the window')
    await v.control('refuse', { on: 'true' })
    await v.page.getByText('No connection').first().waitFor()
    await look('offline')
    await v.control('refuse', { on: 'false' })
  },

  /** Every flow without a pointer. */
  async keyboard(open) {
    const v = await open()
    const { keyboard } = v.page
    await v.field.waitFor()
    await keyboard.type('typed at once')
    await keyboard.press('Shift+Enter')
    await keyboard.type('on two lines')
    await keyboard.press('Enter')
    await v.settled('answer to: typed at once')
    await keyboard.press('ArrowUp')
    await v.page.getByRole('textbox', { name: 'Edit the message' }).waitFor()
    await keyboard.press('Control+a')
    await keyboard.type('edited by keys')
    await keyboard.press('Enter')
    await v.settled('answer to: edited by keys')
    await v.log.getByText('2 / 2').waitFor()
    await keyboard.press('Alt+ArrowUp')
    await keyboard.press('Alt+ArrowUp')
    await keyboard.press('ArrowLeft')
    await v.settled('answer to: typed at once')
    await v.field.focus()
    await keyboard.press('Alt+ArrowUp')
    await keyboard.press('p')
    await until('the answer is pinned', async () => (await v.api(`sessions/${v.session()}/messages`)).items.some(m => m.pinned))
    await keyboard.press('r')
    await until('there is a new answer', async () => (await v.api(`sessions/${v.session()}/messages`)).items.at(-1).branch?.count === 2)
    await v.idle()
    await v.page.getByRole('link', { name: 'To the message field' }).focus()
    await keyboard.press('Enter')
    check(await v.field.evaluate(e => e === document.activeElement), 'the skip link does not lead to the field')
    for (const [from, by] of [['Stop', 'Enter'], ['Stop', 'Escape'], ['the field', 'Escape']]) {
      await keyboard.type('hold-keys and stop')
      await keyboard.press('Enter')
      await v.log.getByText('answer to:').last().waitFor()
      await v.page.locator('[role=log][aria-busy=true]').waitFor()
      if (from === 'Stop') await v.button('Stop').focus()
      await keyboard.press(by)
      await v.answer.getByText('You stopped it').waitFor()
      check(await v.field.evaluate(e => e === document.activeElement), `the field has no focus after ${by} on ${from}`)
    }
    await v.control('release', { mark: 'hold-keys', pieces: 20 })
    await keyboard.press('Control+.')
    await v.page.getByRole('complementary', { name: /Context/ }).waitFor({ state: 'attached' })
    await keyboard.press('Escape')
    await v.page.getByRole('complementary', { name: /Context/ }).waitFor({ state: 'detached' })
    await keyboard.press('Control+Shift+o')
    await until('a new conversation', () => v.session() === '')
    await keyboard.type('the second one')
    await keyboard.press('Enter')
    await v.settled('answer to: the second one')
    await keyboard.press('Control+k')
    await keyboard.type('second') // right after Ctrl K: the search's
    equal([await v.page.getByRole('combobox').inputValue(), await v.field.inputValue()], ['second', ''], 'the search and the field')
    await v.page.getByRole('option').first().waitFor()
    await keyboard.press('Escape')
    await v.page.getByRole('dialog').waitFor({ state: 'detached' })
    await v.page.getByRole('link', { name: 'New conversation' }).focus()
    await keyboard.press('Tab')
    await keyboard.press('Tab')
    const current = () => v.page.evaluate(() => document.activeElement.textContent.trim())
    check(await v.list.evaluate(e => e.contains(document.activeElement)), `Tab after the search is at ${await current()}`)
    await keyboard.press('ArrowDown')
    await keyboard.press('Enter')
    await v.settled('You stopped it')
    await v.page.getByRole('link', { name: 'New conversation' }).focus()
    await keyboard.press('?')
    await v.page.getByRole('dialog').waitFor()
    await keyboard.press('Escape')
    await v.page.getByRole('dialog').waitFor({ state: 'detached' })
  },

  /** An input method writes: its Enter takes a word, and sends nothing. */
  async ime(open) {
    const v = await open()
    await v.field.focus()
    const devtools = await v.context.newCDPSession(v.page)
    await devtools.send('Input.imeSetComposition', { text: 'にほん', selectionStart: 3, selectionEnd: 3 })
    await v.field.evaluate(e => e.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', isComposing: true, bubbles: true, cancelable: true })))
    equal([v.session(), await v.field.inputValue()], ['', 'にほん'], 'while composing')
    await devtools.send('Input.insertText', { text: '日本' })
    await v.field.press('Enter')
    await v.settled('answer to: 日本')
    const id = v.session()
    // Safari ends the composition before the Enter that ended it; only the code is left.
    const late = field => field.evaluate(e => e.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', keyCode: 229, bubbles: true, cancelable: true })))
    const untouched = async (name, open) => {
      await open()
      const field = v.page.getByRole(name === 'Search in titles and messages' ? 'combobox' : 'textbox', { name })
      await field.fill('日本')
      await late(field)
      equal([await field.inputValue(), v.session(), await v.articles.count()], ['日本', id, 2], `after the Enter of an input method in ${name}`)
      await v.page.keyboard.press('Escape')
    }
    await untouched('Write a message', () => {})
    await untouched('New title', () => v.page.keyboard.press('F2'))
    await untouched('Search in titles and messages', () => v.page.keyboard.press('Control+k'))
    await untouched('Edit the message', () => v.button('Edit', v.articles.first()).click())
  },
}
