// Package wasmtime runs guests on wasmtime, the second engine. It is a second opinion:
// it runs what the default engine runs, and a difference in results, traps or fuel is a
// fault of one of the two. It is for tests and for modules that their operator trusts,
// never for untrusted code in a daemon, for these reasons:
//
//   - The newest line of the Go binding that could be had, v39, embeds a prebuilt
//     library in which the advisories of April 2026 are not fixed (they are in 24.0.7,
//     36.0.7, 42.0.2 and 43.0.1): CVE-2026-34971, a miscompilation on aarch64 that lets
//     a guest out of its sandbox; CVE-2026-34987, the same with the Winch compiler;
//     CVE-2026-34941, -34942, -34943, -34944, -34945, -34946, -34983, -34988 and -35195.
//     Nor are those of later months.
//   - It runs native code through cgo: a fault of the library ends the whole process, or
//     worse.
//   - Each instance reserves some GiB of address space, and a call takes some
//     microseconds, a hundred times what it takes on the default engine.
//
// Therefore the package is built for amd64 alone, where the first of them does not
// apply, does not use Winch, components or pooling, and links nothing unless it is asked
// for by a build tag and with cgo:
//
//	go build -tags wasmtime ./...
//	go test -tags wasmtime ./runtime/wasmtime
//
// The first such build downloads the binding, 55 MB packed and 207 MB unpacked.
// Without the tag, or on another architecture, this file is all that there is.
package wasmtime

// Version is the version of the Go binding, and so of the library that it brings.
const Version = "v39.0.1"

// Advisories says for people which published faults the library has.
const Advisories = "not fixed in it are CVE-2026-34971 and -34987 (a guest leaves its sandbox; on aarch64, and with a compiler that is not used) " +
	"and CVE-2026-34941 to -34946, -34983, -34988, -35195, nor later ones: a second opinion only"
