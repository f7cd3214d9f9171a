// The event queue of the simulator. Events of equal time come in order of scheduling, so that runs are reproducible.
// A 4-ary heap: O(log n) per event with half the levels of a binary one.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/time.h"

namespace motley::sim {

template <class What>
class EventQueue {
 public:
  void at(Instant when, What what) {
    heap_.push_back({when, next_++, std::move(what)});
    rise(heap_.size() - 1);
  }
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] std::size_t size() const { return heap_.size(); }
  [[nodiscard]] Instant next_time() const { return heap_.front().when; }

  /// The earliest. Must not be empty.
  std::pair<Instant, What> pop() {
    check(!heap_.empty(), "there is a next event");
    std::pair<Instant, What> first{heap_.front().when, std::move(heap_.front().what)};
    Item last = std::move(heap_.back());
    heap_.pop_back();
    if (!heap_.empty()) sink(std::move(last));
    return first;
  }

 private:
  struct Item {
    Instant when{};
    std::uint64_t order = 0;
    What what{};
    [[nodiscard]] bool before(const Item& other) const { return when != other.when ? when < other.when : order < other.order; }
  };

  void rise(std::size_t hole) {
    Item item = std::move(heap_[hole]);
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / 4;
      if (!item.before(heap_[parent])) break;
      heap_[hole] = std::move(heap_[parent]);
      hole = parent;
    }
    heap_[hole] = std::move(item);
  }

  /// Moves `item` down from the root to its place.
  void sink(Item item) {
    std::size_t hole = 0;
    for (;;) {
      const std::size_t first = 4 * hole + 1;
      if (first >= heap_.size()) break;
      std::size_t least = first;
      for (std::size_t child = first + 1; child < std::min(first + 4, heap_.size()); ++child)
        if (heap_[child].before(heap_[least])) least = child;
      if (!heap_[least].before(item)) break;
      heap_[hole] = std::move(heap_[least]);
      hole = least;
    }
    heap_[hole] = std::move(item);
  }

  std::vector<Item> heap_;
  std::uint64_t next_ = 0;
};

}  // namespace motley::sim
