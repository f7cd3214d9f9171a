// The control lane on any bytes, frame after frame as a lane reads them, until it refuses or wants more.
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

/// A goodbye was made printable on the way in: it is as long as it was, and stays as it is now.
void check_goodbye(const transport::Goodbye& goodbye, fuzz::Span taken) {
  check(std::all_of(goodbye.reason.begin(), goodbye.reason.end(), [](char c) { return c >= ' ' && c <= '~'; }), "a reason can be printed");
  const wire::Bytes again = written(goodbye);
  check(again.size() == taken.size(), "a reason keeps its length");
  const auto parsed = transport::parse_control(again);
  check(parsed.ok() && std::get<transport::Goodbye>(std::get<transport::ParsedControlFrame>(*parsed).frame).reason == goodbye.reason,
        "a printable reason stays as it is");
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
      check(incomplete->more_bytes >= 1, "an incomplete frame asks for something");
      return 0;
    }
    const auto& whole = std::get<transport::ParsedControlFrame>(*parsed);
    check(whole.bytes >= 1 && whole.bytes <= left.size(), "a frame takes something, and no more than was given");
    const fuzz::Span taken = left.first(whole.bytes);
    if (const auto* goodbye = std::get_if<transport::Goodbye>(&whole.frame))
      check_goodbye(*goodbye, taken);
    else
      check(fuzz::same(written(whole.frame), taken), "what was said has one frame only");
    fuzz::check_initial_states(taken, [](fuzz::Span some) { return transport::parse_control(some); });
    left = left.subspan(whole.bytes);
  }
  return 0;
}
