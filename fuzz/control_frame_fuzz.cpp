// The control lane on arbitrary bytes: parses frame after frame until one is refused or incomplete.
#include "base/match.h"
#include "fuzzing.h"
#include "transport/control_frame.h"

using namespace motley;  // NOLINT(google-build-using-namespace): a program of few functions

namespace {

wire::Bytes written(const transport::Said& reported) {
  wire::Bytes out;
  std::visit(match{[&](const wire::Message& message) { transport::append_message(message, out); },
                   [&](const transport::Credit& credit) { transport::append_credit(credit.bytes, out); },
                   [&](const transport::Goodbye& goodbye) { transport::append_goodbye(goodbye.reason, out); }},
             reported);
  return out;
}

/// A parsed goodbye was made printable: it keeps its length, and encoding it again does not change it.
void check_goodbye(const transport::Goodbye& goodbye, fuzz::Span taken) {
  check(std::all_of(goodbye.reason.begin(), goodbye.reason.end(), [](char c) { return c >= ' ' && c <= '~'; }), "a reason is printable");
  const wire::Bytes again = written(goodbye);
  check(again.size() == taken.size(), "a reason keeps its length");
  const auto parsed = transport::parse_control(again);
  check(parsed.ok() && std::get<transport::Goodbye>(std::get<transport::ParsedControlFrame>(*parsed).frame).reason == goodbye.reason,
        "a printable reason is not changed");
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t largest, unsigned seed) {
  constexpr std::size_t tag_bytes = 1;
  const bool is_message = size > 0 && data[0] == 0;
  return is_message ? fuzz::mutate(data, size, largest, seed, tag_bytes, 0) : LLVMFuzzerMutate(data, size, largest);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (fuzz::Span left = fuzz::bytes_of(data, size); !left.empty();) {
    const auto parsed = transport::parse_control(left);
    if (!parsed.ok()) return fuzz::check_refusal(parsed.error()), 0;
    if (const auto* incomplete = std::get_if<wire::Incomplete>(&*parsed)) {
      check(incomplete->more_bytes >= 1, "an incomplete frame asks for at least one byte");
      return 0;
    }
    const auto& whole = std::get<transport::ParsedControlFrame>(*parsed);
    check(whole.bytes >= 1 && whole.bytes <= left.size(), "a frame has at least one byte and no more than the input");
    const fuzz::Span taken = left.first(whole.bytes);
    if (const auto* goodbye = std::get_if<transport::Goodbye>(&whole.frame))
      check_goodbye(*goodbye, taken);
    else
      check(fuzz::same(written(whole.frame), taken), "a frame has one encoding only");
    fuzz::check_initial_states(taken, [](fuzz::Span some) { return transport::parse_control(some); });
    left = left.subspan(whole.bytes);
  }
  return 0;
}
