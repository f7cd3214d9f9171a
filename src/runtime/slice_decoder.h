// Decodes slices of contributions (8, 4 or 2 bits) into their flat buffers, on the store thread's pool.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/buffer.h"
#include "runtime/store_thread.h"
#include "store/layout.h"

namespace motley::runtime {

/// Event-loop thread only. Slices that arrive faster than they are decoded gather, and are then decoded in parallel.
class SliceDecoder {
 public:
  struct Slice {
    SharedBuffer flat;  // where the values go
    store::Slice place;
    std::uint8_t bits{};
    std::vector<std::byte> bytes;  // of the size that the codec expects
  };

  explicit SliceDecoder(StoreThread& store_thread) : store_thread_(store_thread) {}
  void add(Slice slice);
  /// Work that is given to the store thread after this call finds every slice that was added decoded.
  void flush();

 private:
  StoreThread& store_thread_;
  std::vector<Slice> waiting_;
  bool decoding_ = false;
};

}  // namespace motley::runtime
