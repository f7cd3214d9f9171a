#include "runtime/slice_decoder.h"

#include <utility>

#include "base/check.h"
#include "codec/codec.h"

namespace motley::runtime {

void SliceDecoder::add(Slice slice) {
  waiting_.push_back(std::move(slice));
  if (!decoding_) flush();
}

void SliceDecoder::flush() {
  if (waiting_.empty()) return;
  decoding_ = true;
  store_thread_.run(
      [&pool = store_thread_.pool(), batch = std::exchange(waiting_, {})](store::ShardStore&) {
        pool->parallel_for(batch.size(), [&](std::size_t i) {
          const Slice& slice = batch[i];
          const std::span<float> out = slice.flat->floats().subspan(slice.place.offset, slice.place.count);
          const Outcome decoded = codec::make(slice.bits).value()->decode(slice.bytes, out);
          check(decoded.ok(), "a payload's size was checked when it was announced");
        });
      },
      [this] {
        decoding_ = false;
        flush();
      });
}

}  // namespace motley::runtime
