// Whole models out of parts: what the chief wants to evaluate or save, and what each server has handed in of it so far. Knows no
// connection.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/time.h"
#include "protocol/chief.h"
#include "runtime/buffer.h"
#include "runtime/shard_host.h"
#include "store/layout.h"
#include "store/optimizer.h"

namespace motley::runtime {

/// One version, as every server exports it.
struct ModelRequest {
  Version version;
  std::optional<std::uint64_t> evaluate{};     // samples counted then
  std::optional<protocol::ChiefState> save{};  // with the optimizer's moments
  Instant at{};
  SharedBuffer values{};
  std::optional<store::Moments> moments{};
};

/// Each server hands in what was asked for in order: the first that it has not is what comes next.
class ModelAssembly {
 public:
  ModelAssembly(store::Layout layout, OptimizerKind optimizer) : layout_(std::move(layout)), optimizer_(optimizer) {}

  void want(ModelRequest wanted) { wanted_.push_back({std::move(wanted), {}, {}}); }
  [[nodiscard]] bool empty() const { return wanted_.empty(); }

  /// Server 0's part, all at once.
  void exported(Exported what);
  /// Another server's, piece by piece: where it goes (empty: nobody asked for it), and that it is there.
  std::span<std::byte> receive_buffer(const wire::StateChunk& piece, std::size_t bytes);
  void received(const wire::StateChunk& piece);

  /// The next that is whole, in the order in which they were wanted.
  std::optional<ModelRequest> take();

 private:
  struct Part {
    ModelRequest wanted;
    std::map<ServerId, std::uint64_t> pieces;
    std::set<ServerId> done;
  };
  [[nodiscard]] Part* next_of(ServerId server);

  store::Layout layout_;
  OptimizerKind optimizer_;
  std::deque<Part> wanted_;
};

}  // namespace motley::runtime
