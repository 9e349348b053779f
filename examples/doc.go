// Package examples holds what there is to try: real envelopes (envelopes), a commented
// configuration (config) and a program that embeds kvrt (embed). Its tests hold them:
// what the README of the envelopes says comes out, and every file does what its name
// says.
package examples
