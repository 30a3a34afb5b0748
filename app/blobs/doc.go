// Package blobs takes images and files in and attaches them to messages.
//
// An upload is judged by its bytes alone (attach.Sniff), stored once for each owner
// and hash, and kept as long as a message refers to it. One that no message came to
// refer to within a day is swept. Reading is the repository's.
package blobs
