// What the scripts share: they tell the Go test what happens in lines of JSON, and end when
// their standard input does.
export const tell = value => process.stdout.write(JSON.stringify(value) + '\n')
export const { SLACK_API_URL: slackApiUrl, SLACK_TOKEN: token, SLACK_OTHER_TOKEN: otherToken } = process.env

process.stdin.resume().on('end', () => process.exit(0))
process.on('unhandledRejection', error => { tell({ failed: String(error?.stack ?? error) }); process.exit(1) })
