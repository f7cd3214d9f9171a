#include "transport/shared_frame_reader.h"

#include <cstring>
#include <span>
#include <utility>

namespace motley::transport {

asio::awaitable<boost::system::error_code> SharedFrameReader::read_some(Stream& stream) {
  std::memmove(input_.data(), input_.data() + begin_, end_ - begin_);
  end_ -= std::exchange(begin_, 0);
  ReadWithFile read = co_await read_some_with_file(stream, std::span(input_).subspan(end_));
  end_ += read.bytes;
  if (read.file.number() >= 0) files_.push_back(std::move(read.file));
  co_return read.failed;
}

Result<std::optional<SharedFrame>> SharedFrameReader::next() {
  auto parsed = parse_shared_frame(std::span(input_).subspan(begin_, end_ - begin_), largest_payload_bytes_);
  if (!parsed.ok()) return parsed.error();
  auto* whole = std::get_if<ParsedSharedFrame>(&*parsed);
  if (whole == nullptr) return std::optional<SharedFrame>();
  begin_ += whole->bytes;
  return std::optional(std::move(whole->frame));
}

std::optional<Descriptor> SharedFrameReader::take_file() {
  if (files_.empty()) return std::nullopt;
  Descriptor file = std::move(files_.front());
  files_.pop_front();
  return file;
}

}  // namespace motley::transport
