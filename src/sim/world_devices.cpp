// The devices of a simulated cluster: when a step begins, reads, makes and ends. The rest of the world: world.cpp.
#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/world.h"

namespace motley::sim {

/// The first boundary between local steps that comes after it landed; the walk takes it in there.
void World::slice_arrived(std::uint32_t n, const wire::Pulled& slice) {
  if (layer_sequence_) {
    auto& here = nodes_[n].here[{slice.worker, slice.step}];
    here.resize(options_.layout.slices.size());
    here[slice.slice.value] = true;
  }
  auto& running = nodes_[n].running;
  if (!running || running->order.local_steps < 2 || slice.worker != running->order.worker || slice.step <= running->order.step) return;
  const double done = seconds(now_ - running->began) / seconds(running->ends - running->began);
  const auto after = static_cast<std::uint32_t>(std::max(1.0, std::ceil(done * running->order.local_steps)));
  if (after < running->order.local_steps) running->arrived_slices.push_back({slice.slice, after});
}

void World::begin_compute(std::uint32_t n, const wire::Order& order) {
  Node& node = nodes_[n];
  node.running = Running{order, now_, {}, {}, {}, false};
  ++node.serial;
  const auto outcome = devices_[n].work(now_, order.lease.size(), order.local_steps, order.limit, order.micro);
  node.running->order.lease.cut(outcome.samples);
  node.running->ends = outcome.end;
  node.running->first_of_size = outcome.first_of_size;
  if (layer_sequence_) {
    node.here.erase(node.here.begin(), node.here.lower_bound({order.worker, order.parameters}));
    node.running->streaming.emplace(*layer_sequence_, now_, outcome.end - now_);
    queue_.at(now_, SlicesDue{n, node.serial});
  } else {
    queue_.at(outcome.end, ComputeEnds{n, node.serial});
  }
  tell(trace::ComputeBegan{.worker = order.worker, .step = order.step});
}

/// As far as the slices that are here let it.
void World::advance_streaming(std::uint32_t n) {
  Node& node = nodes_[n];
  const wire::Order& order = node.running->order;
  std::vector<SliceId> made;
  const auto next = node.running->streaming->advance(now_, node.here.at({order.worker, order.parameters}), made);
  if (next)
    queue_.at(*next, SlicesDue{n, node.serial});
  else if (node.running->streaming->has_read())
    queue_.at(std::max(now_, node.running->streaming->ends()), ComputeEnds{n, node.serial});
  for (const SliceId slice : made) tell_worker(n, protocol::Produced{order.step, slice});
}

void World::end_compute(std::uint32_t n) {
  const Running done = std::move(*nodes_[n].running);
  nodes_[n].running.reset();
  const Contributed result = numbers_.compute(done.order, done.arrived_slices);
  const auto samples = static_cast<std::uint32_t>(done.order.lease.size());
  const Duration stalled = done.streaming ? done.streaming->stalled() : Duration{};
  tell(trace::ComputeEnded{.worker = done.order.worker, .step = done.order.step, .samples = samples, .stalled = stalled});
  tell_worker(n, protocol::Computed{done.order.step, result.loss_sum, result.squared_norm, result.finite, now_ - done.began - stalled,
                                    samples, result.residual, 0, result.update_norm, stalled, done.first_of_size});
}

void World::start_node(std::uint32_t n) {
  Node& node = nodes_[n];
  if (node.machine) return;
  protocol::WorkerOptions worker;
  worker.node = options_.cluster.nodes[n].name;
  worker.max_batch = options_.max_batch.empty() ? 0 : options_.max_batch[n];
  worker.bf16_transfer = options_.bf16_transfer[n];
  worker.node_index = n;
  worker.batch_multiple = options_.cluster.nodes[n].batch_multiple;
  if (worker.batch_multiple > 1) {  // as one that has measured itself
    worker.samples_per_second = options_.cluster.nodes[n].samples_per_second;
    worker.overhead_s = seconds(options_.cluster.nodes[n].overhead);
  }
  for (const store::Slice& slice : options_.layout.slices) worker.servers_of_slices.push_back(slice.server);
  worker.heartbeat = options_.cluster.heartbeat;
  worker.patience = options_.cluster.silence_deadline;
  worker.start_early = layer_sequence_.has_value();
  node.machine.emplace(std::move(worker));
  node.connection = static_cast<std::uint32_t>(connections_.size());
  connections_.push_back({n, std::nullopt});
  queue_.at(now_ + options_.cluster.heartbeat, WorkerTick{node.connection});
  tell_worker(n, protocol::Started{});
}

}  // namespace motley::sim
