// Assembles whole models from the parts that the servers export, for evaluations and checkpoints. Knows no connection.
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

/// One version that every server exports.
struct ModelRequest {
  Version version;
  std::optional<std::uint64_t> evaluate{};     // samples counted then
  std::optional<protocol::ChiefState> save{};  // with the optimizer's moments
  Instant at{};
  SharedBuffer values{};
  std::optional<store::Moments> moments{};
};

/// Each server exports the requested versions in order: its next part belongs to the first that it has not exported.
class ModelAssembly {
 public:
  ModelAssembly(store::Layout layout, OptimizerKind optimizer) : layout_(std::move(layout)), optimizer_(optimizer) {}

  void want(ModelRequest wanted) { wanted_.push_back({std::move(wanted), {}, {}}); }
  [[nodiscard]] bool empty() const { return wanted_.empty(); }

  /// The part of server 0, in one piece.
  void exported(Exported what);
  /// A chunk of another server's part: where it is received (empty: it was not requested), and that it is there.
  std::span<std::byte> receive_buffer(const wire::StateChunk& piece, std::size_t bytes);
  void received(const wire::StateChunk& piece);

  /// The next version if it is whole, in the order of the requests.
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
