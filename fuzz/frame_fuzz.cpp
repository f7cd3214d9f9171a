// wire::parse on arbitrary bytes: it refuses with a reason, asks for more, or returns a message whose frame is exactly the bytes it took.
#include "fuzzing.h"

using namespace motley;  // NOLINT(google-build-using-namespace): a program of two functions

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t largest, unsigned seed) {
  return fuzz::mutate(data, size, largest, seed, 0, 0);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::Span bytes = fuzz::bytes_of(data, size);
  const auto parsed = wire::parse(bytes);
  if (!parsed.ok()) return fuzz::check_refusal(parsed.error()), 0;
  if (const auto* incomplete = std::get_if<wire::Incomplete>(&*parsed)) {
    check(incomplete->more_bytes >= 1, "an incomplete frame asks for at least one byte");
    return 0;
  }
  const auto& complete = std::get<wire::Complete>(*parsed);
  check(complete.bytes <= size, "a frame is no longer than the input");
  check(wire::encoded_bytes(complete.message) == complete.bytes, "encoded_bytes() is the size of the frame");
  wire::Bytes again;
  wire::append(complete.message, again);
  check(fuzz::same(again, bytes.first(complete.bytes)), "a message has one encoding only");
  fuzz::check_initial_states(again, [](fuzz::Span some) { return wire::parse(some); });
  return 0;
}
