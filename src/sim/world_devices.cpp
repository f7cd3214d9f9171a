// The devices of a simulated cluster: when a step begins, reads, makes and ends. The rest of the world: world.cpp.
#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/world.h"

namespace motley::sim {

/// The first boundary between local steps that comes after it landed; the walk takes it in there.
void World::land(std::uint32_t n, const wire::Pulled& slice) {
  if (score_) {
    auto& here = nodes_[n].here[{slice.worker, slice.step}];
    here.resize(options_.layout.slices.size());
    here[slice.slice.value] = true;
  }
  auto& running = nodes_[n].running;
  if (!running || running->order.local_steps < 2 || slice.worker != running->order.worker || slice.step <= running->order.step) return;
  const double done = seconds(now_ - running->began) / seconds(running->ends - running->began);
  const auto after = static_cast<std::uint32_t>(std::max(1.0, std::ceil(done * running->order.local_steps)));
  if (after < running->order.local_steps) running->landed.push_back({slice.slice, after});
}

void World::begin_compute(std::uint32_t n, const wire::Order& order) {
  Node& node = nodes_[n];
  node.running = Running{order, now_, {}, {}, {}, false};
  ++node.serial;
  const auto stint = devices_[n].work(now_, order.lease.size(), order.local_steps, order.limit, order.micro);
  node.running->order.lease.cut(stint.samples);
  node.running->ends = stint.end;
  node.running->first_of_size = stint.first_of_size;
  if (score_) {
    node.here.erase(node.here.begin(), node.here.lower_bound({order.worker, order.parameters}));
    node.running->streaming.emplace(*score_, now_, stint.end - now_);
    queue_.at(now_, SlicesDue{n, node.serial});
  } else {
    queue_.at(stint.end, ComputeEnds{n, node.serial});
  }
  tell({.kind = trace::Kind::compute_began, .worker = order.worker, .step = order.step});
}

/// As far as the slices that are here let it.
void World::press_on(std::uint32_t n) {
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
  const Contributed result = numbers_.compute(done.order, done.landed);
  const auto samples = static_cast<std::uint32_t>(done.order.lease.size());
  const Duration stood = done.streaming ? done.streaming->stood() : Duration{};
  tell({.kind = trace::Kind::compute_ended,
        .worker = done.order.worker,
        .step = done.order.step,
        .first = samples,
        .value = seconds(stood)});
  tell_worker(n, protocol::Computed{done.order.step, result.loss_sum, result.squared_norm, result.finite, now_ - done.began - stood,
                                    samples, result.residual, 0, result.moved, stood, done.first_of_size});
}

}  // namespace motley::sim
