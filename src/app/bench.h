// Micro benchmarks: each prints a flat object of figures, with its physical limit beside it where it has one. They time; tests assert.
#pragma once
#include <boost/json/object.hpp>

namespace motley::app {

/// events_per_second of the simulator on one core, timing only; 10,000 workers for 100 steps; ns per event over the number of workers.
boost::json::object bench_sim();
/// Microseconds per contribution of each strategy at 10, 100, 1,000 and 10,000 workers.
boost::json::object bench_policy();
/// Bytes per second of applying an update and looking ahead, with one thread and with two, beside memcpy and a stream triad in the same
/// run; in memory and in cache.
boost::json::object bench_store();
/// Bytes per second of pushing, applying and pulling 128 MiB between processes, beside bare TCP in the same run; place of an urgent slice.
boost::json::object bench_transport();

}  // namespace motley::app
