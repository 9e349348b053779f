package metrics

import "github.com/prometheus/client_golang/prometheus"

// descs are the names, helps and labels of everything that is shown.
type descs struct {
	build, generation, guests, guestInfo                                 *prometheus.Desc
	dispatches, malformed, unrouted, swaps                               *prometheus.Desc
	formulations, badContexts, emitted, left, skipped                    *prometheus.Desc
	calls, results, traps, durations, fuel                               *prometheus.Desc
	logDropped, unavailable, quarantines, quarantined, instances, memory *prometheus.Desc
	stalls, crowded, heavy, heavyRunning, heavyMost                      *prometheus.Desc
	budget, reserved, idles, idleFuel, idleTraps, idleTime               *prometheus.Desc
	connections, opened, frames, oneway, errors                          *prometheus.Desc
	bytesIn, bytesOut, buffered, reloadOK, reloadTime                    *prometheus.Desc
	entries, tombstones, hashBytes, prepared, submits, ended             *prometheus.Desc
	fetchRefused                                                         *prometheus.Desc
	all                                                                  []*prometheus.Desc
}

func newDescs() (d descs) {
	for _, x := range []struct {
		to     **prometheus.Desc
		name   string
		help   string
		labels []string
	}{
		{&d.build, "build_info", "The daemon's version, Go's, and the ABI's. Always 1.", []string{"version", "go", "abi"}},
		{&d.generation, "generation", "The generation that is current. It grows by 1 with each change of the guests.", nil},
		{&d.guests, "guests", "Guests that are loaded.", nil},
		{&d.guestInfo, "guest_info", "What is loaded under a name: version, digest, and the generation that loaded it. Always 1.", []string{"guest", "version", "sha256", "generation"}},
		{&d.dispatches, "dispatches_total", "Envelopes that were dispatched, malformed ones included.", nil},
		{&d.malformed, "malformed_total", "Envelopes that were malformed: no handler ran.", nil},
		{&d.unrouted, "unrouted_total", "Actions that were rejected before they reached a guest.", []string{"reason"}},
		{&d.formulations, "formulations_total", "Routing contexts that went through the policies, malformed ones included.", nil},
		{&d.badContexts, "malformed_contexts_total", "Routing contexts that were malformed: no policy ran.", nil},
		{&d.emitted, "policy_actions_total", "Actions of a policy that went into envelopes.", []string{"guest"}},
		{&d.left, "policy_actions_dropped_total", "Actions of a policy that were left out of envelopes.", []string{"guest", "reason"}},
		{&d.skipped, "policy_skipped_total", "Requests that a policy was not called for: they lacked a field that it requires, or their caller was gone.", []string{"guest"}},
		{&d.swaps, "swaps_total", "Changes of the guests: loads, swaps, rollbacks, unloads, reloads.", []string{"result"}},
		{&d.calls, "calls_total", "Calls of a guest.", []string{"guest"}},
		{&d.results, "results_total", "Results of a guest's calls. Accepted ones have no reason.", []string{"guest", "status", "reason"}},
		{&d.traps, "traps_total", "Calls that ended without an answer.", []string{"guest", "kind"}},
		{&d.durations, "call_duration_seconds", "How long calls of a guest took, effects included.", []string{"guest"}},
		{&d.fuel, "fuel_total", "Fuel that a guest's calls used; 0 where fuel is not metered.", []string{"guest"}},
		{&d.logDropped, "log_lines_dropped_total", "Lines that a guest wrote beyond what a call may.", []string{"guest"}},
		{&d.unavailable, "unavailable_total", "Calls that found no free instance of a guest in time, or the guest quarantined.", []string{"guest"}},
		{&d.crowded, "crowded_total", "Those of unavailable_total that found as many heavy calls running as may run at once.", []string{"guest"}},
		{&d.heavy, "heavy", "1 while calls of a guest take so much fuel that only some of them run at once.", []string{"guest"}},
		{&d.heavyRunning, "heavy_calls", "Calls of heavy guests that run.", nil},
		{&d.heavyMost, "heavy_calls_limit", "Calls of heavy guests that may run at once.", nil},
		{&d.quarantines, "quarantines_total", "How often a guest was taken out of service because half of its calls trapped.", []string{"guest"}},
		{&d.quarantined, "quarantined", "1 while a guest is out of service because half of its calls trapped.", []string{"guest"}},
		{&d.instances, "instances", "Instances of a guest; vacant ones have trapped and are being replaced, stuck ones are held by a call that has not ended for a second or more.", []string{"guest", "state"}},
		{&d.memory, "guest_memory_bytes", "Linear memory of all instances of a guest.", []string{"guest"}},
		{&d.stalls, "stalls_total", "Calls that did not end for a second or more: a host function blocks.", []string{"guest"}},
		{&d.budget, "guest_memory_budget_bytes", "What the instances of all guests may come to, at their limits.", nil},
		{&d.reserved, "guest_memory_reserved_bytes", "What the instances of the guests that are loaded, or being replaced, may come to.", nil},
		{&d.idles, "idle_calls_total", "Calls of a guest's kvrt_idle, in which it collects its garbage.", []string{"guest"}},
		{&d.idleFuel, "idle_fuel_total", "Fuel that a guest's kvrt_idle used.", []string{"guest"}},
		{&d.idleTime, "idle_seconds_total", "Time that a guest's kvrt_idle took. No call waits for it while an instance is free.", []string{"guest"}},
		{&d.idleTraps, "idle_traps_total", "Calls of kvrt_idle that cost the instance.", []string{"guest", "kind"}},
		{&d.connections, "connections", "Connections of the data socket that are open.", nil},
		{&d.opened, "connections_total", "Connections to the data socket.", []string{"result"}},
		{&d.frames, "frames_total", "Requests on the data socket.", []string{"op"}},
		{&d.oneway, "oneway_total", "Submits that were carried out and wanted no reply.", nil},
		{&d.errors, "request_errors_total", "Requests and connections that were refused, those that nobody could be told of included.", []string{"code"}},
		{&d.bytesIn, "received_bytes_total", "Bytes read from the data socket.", nil},
		{&d.bytesOut, "sent_bytes_total", "Bytes written to the data socket.", nil},
		{&d.buffered, "buffered_bytes", "What the buffers of large frames take.", nil},
		{&d.reloadOK, "reload_success", "1 when the last reload was carried out, or there was none; 0 when it was refused.", nil},
		{&d.reloadTime, "reload_timestamp_seconds", "When the configuration was last taken over, the start included.", nil},
		{&d.entries, "fetch_entries", "Requests with a stored hint.", nil},
		{&d.tombstones, "fetch_tombstones", "Requests that have ended and still refuse late hints.", nil},
		{&d.hashBytes, "fetch_bytes", "Memory that the hashes of stored hints take.", nil},
		{&d.prepared, "fetch_prepared_bytes", "Memory of hints that wait for the verdict on their action.", nil},
		{&d.submits, "fetch_submits_total", "Hints that the store took.", []string{"result"}},
		{&d.ended, "fetch_ended_total", "Requests and hints that have ended.", []string{"how"}},
		{&d.fetchRefused, "fetch_refused_total", "Hints that the store refused.", []string{"reason"}},
	} {
		*x.to = prometheus.NewDesc("kvrt_"+x.name, x.help, x.labels, nil)
		d.all = append(d.all, *x.to)
	}
	return d
}
