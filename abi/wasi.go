package abi

// ModuleWASI is an import module that is no capability: a stub of WASI preview 1, so
// that the programs start whose compilers cannot do without it. It reaches nothing
// outside the call, so it needs no grant and stands in no manifest.
const ModuleWASI = "wasi_snapshot_preview1"

// stubs lists the functions of ModuleWASI that a host has: those that stock Go and the
// WASI builds of other toolchains import. Each returns a WASI errno.
func stubs() []Function {
	var out []Function
	add := func(fuel, perB uint64, doc string, names ...string) {
		for _, sig := range names {
			f := Function{Module: ModuleWASI, Result: I32, Fuel: fuel, PerB: perB, Doc: doc}
			f.Name, f.Params = wasiParams(sig)
			if f.Name == "proc_exit" {
				f.Result = 0
			}
			out = append(out, f)
		}
	}
	add(20, 0, "There are none.", "args_get ii", "args_sizes_get ii", "environ_get ii", "environ_sizes_get ii")
	add(20, 0, "The call's clocks, which do not move while it runs: wall (0) and monotonic (1, and the CPU clocks 2 and 3).", "clock_time_get iIi")
	add(20, 0, "1 ns.", "clock_res_get ii")
	add(50, 64, "Bytes of a generator that is seeded with the call's clocks, and with nothing while an instance is started: good for maps and jitter, no secret.", "random_get ii")
	add(50, 8, "File descriptor 1: the guest's log at info, 2: at warn, by lines, under the quota of kvrt_log. At most 1,024 buffers. Others: badf.", "fd_write iiii")
	add(20, 0, "1 and 2 are character devices that can be written to. Others: badf.", "fd_fdstat_get ii")
	add(20, 0, "Nothing is done for 1 and 2. Others: badf.", "fd_fdstat_set_flags ii", "fd_sync i")
	add(20, 0, "1 and 2: spipe. Others: badf.", "fd_seek iIii", "fd_tell ii")
	add(20, 0, "badf.", "fd_close i", "fd_read iiii", "fd_pread iiiIi", "fd_pwrite iiiIi", "fd_readdir iiiIi", "fd_renumber ii", "fd_prestat_get ii", "fd_prestat_dir_name iii",
		"fd_filestat_get ii", "fd_filestat_set_size iI", "fd_filestat_set_times iIIi", "fd_datasync i")
	add(20, 0, "nosys.", "path_create_directory iii", "path_filestat_get iiiii", "path_filestat_set_times iiiiIIi", "path_link iiiiiii", "path_open iiiiiIIii",
		"path_readlink iiiiii", "path_remove_directory iii", "path_rename iiiiii", "path_symlink iiiii", "path_unlink_file iii",
		"sock_accept iii", "sock_recv iiiiii", "sock_send iiiii", "sock_shutdown ii")
	add(10, 0, "Nothing else can run.", "sched_yield ")
	add(50, 8, "Succeeds at once: every clock that is waited for has come (the call's clocks move that far), every file descriptor is badf.", "poll_oneoff iiii")
	add(20, 0, "Ends the call as a trap.", "proc_exit i")
	return out
}

// wasiParams takes apart a name and the types of its parameters: i for i32, I for i64.
func wasiParams(sig string) (name string, params []Param) {
	for i, c := range sig {
		switch {
		case name == "" && c == ' ':
			name = sig[:i]
		case name != "" && c == 'I':
			params = append(params, Param{Type: I64})
		case name != "":
			params = append(params, Param{Type: I32})
		}
	}
	return name, params
}
