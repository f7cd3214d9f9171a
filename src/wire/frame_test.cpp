// Frames: every message is parsed as it was written; truncated, damaged and random bytes are refused.
#include "wire/frame.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <boost/mp11.hpp>
#include <limits>

#include "base/rng.h"
#include "wire/encode.h"

namespace motley::wire {
namespace {

constexpr std::size_t kinds = std::variant_size_v<Message>;

/// Random content for every described type.
template <class T>
void fill(Rng& rng, T& x) {
  if constexpr (std::same_as<T, bool>) {
    x = rng.below(2) == 1;
  } else if constexpr (std::is_enum_v<T>) {
    using Values = boost::describe::describe_enumerators<T>;
    constexpr std::size_t count = boost::mp11::mp_size<Values>::value;
    boost::mp11::mp_with_index<count>(rng.below(count), [&](auto i) { x = boost::mp11::mp_at<Values, decltype(i)>::value; });
  } else if constexpr (std::integral<T>) {
    x = static_cast<T>(rng.bits());
  } else if constexpr (std::same_as<T, double>) {
    x = std::bit_cast<double>(rng.bits());  // NaNs and denormals included
  } else if constexpr (is_named_number<T>) {
    fill(rng, x.value);
  } else if constexpr (std::same_as<T, Duration>) {
    x = Duration{static_cast<std::int64_t>(rng.bits())};
  } else if constexpr (List<T>) {
    x.resize(rng.below(6));
    for (auto& item : x) fill(rng, item);
  } else {
    boost::mp11::mp_for_each<Members<T>>([&](auto member) { fill(rng, x.*member.pointer); });
    if constexpr (std::same_as<T, Range>) x.last = std::max(x.first, x.last);
  }
}

Message random_message(std::size_t kind, Rng& rng) {
  return boost::mp11::mp_with_index<kinds>(kind, [&](auto index) {
    std::variant_alternative_t<index, Message> x{};
    fill(rng, x);
    return Message{x};
  });
}

Bytes frame_of(const Message& message) {
  Bytes bytes;
  append(message, bytes);
  return bytes;
}

Bytes bytes_of(std::initializer_list<int> values) {
  Bytes bytes;
  for (int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

/// Corrects the checksum of a damaged frame, so that the later checks are reached.
Bytes resealed(Bytes frame) {
  frame.resize(frame.size() - 4);
  Appender{frame}.put(crc32_z(0, reinterpret_cast<const Bytef*>(frame.data()), frame.size()), 4);
  return frame;
}

void expect_refused(const Bytes& frame, std::string_view because) {
  const Result<Parsed> parsed = parse(frame);
  ASSERT_FALSE(parsed.ok()) << "expected: " << because;
  EXPECT_EQ(parsed.error().next, Next::drop_peer);
  EXPECT_NE(parsed.error().message.find(because), std::string::npos) << parsed.error().message;
}

class FrameLaw : public testing::TestWithParam<std::size_t> {};

TEST_P(FrameLaw, Message_is_parsed_as_it_was_written) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Rng rng(seed, "message", GetParam());
    const Message message = random_message(GetParam(), rng);
    Bytes bytes = frame_of(message);
    const std::size_t size = bytes.size();
    EXPECT_EQ(encoded_bytes(message), size);
    bytes.resize(size + rng.below(20));  // the next frame has begun to arrive

    const Result<Parsed> parsed = parse(bytes);
    ASSERT_TRUE(parsed.ok()) << "seed " << seed << ": " << parsed.error().message;
    const auto& complete = std::get<Complete>(*parsed);
    EXPECT_EQ(complete.bytes, size);
    EXPECT_EQ(complete.message.index(), GetParam());
    bytes.resize(size);
    ASSERT_EQ(frame_of(complete.message), bytes) << "seed " << seed;
  }
}

TEST_P(FrameLaw, Truncated_frame_asks_for_the_missing_bytes) {
  Rng rng(1, "cut", GetParam());
  const Bytes bytes = frame_of(random_message(GetParam(), rng));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const Result<Parsed> parsed = parse(std::span(bytes).first(size));
    ASSERT_TRUE(parsed.ok());
    const auto* incomplete = std::get_if<Incomplete>(&*parsed);
    ASSERT_NE(incomplete, nullptr) << size << " of " << bytes.size() << " bytes";
    EXPECT_GE(incomplete->more_bytes, 1U);
    EXPECT_LE(incomplete->more_bytes, bytes.size() - size) << "asks for no byte beyond the frame";
    if (size >= 12) {
      EXPECT_EQ(incomplete->more_bytes, bytes.size() - size);
    }
  }
}

TEST_P(FrameLaw, Every_single_flipped_bit_is_detected) {
  Rng rng(2, "flip", GetParam());
  Bytes bytes = frame_of(random_message(GetParam(), rng));
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    const auto mask = static_cast<std::byte>(1U << (bit % 8));
    bytes[bit / 8] ^= mask;
    const Result<Parsed> parsed = parse(bytes);
    EXPECT_TRUE(!parsed.ok() || std::holds_alternative<Incomplete>(*parsed)) << "bit " << bit;
    bytes[bit / 8] ^= mask;
  }
}

TEST_P(FrameLaw, Damaged_body_with_a_valid_checksum_is_safe) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Rng rng(seed, "damage", GetParam());
    Bytes bytes = frame_of(random_message(GetParam(), rng));
    for (std::size_t i = 12; i + 4 < bytes.size(); ++i)
      if (rng.below(8) == 0) bytes[i] = static_cast<std::byte>(rng.bits());
    const Bytes frame = resealed(bytes);
    const Result<Parsed> parsed = parse(frame);
    if (parsed.ok()) {
      EXPECT_EQ(frame_of(std::get<Complete>(*parsed).message), frame) << "seed " << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, FrameLaw, testing::Range(std::size_t{0}, kinds));

TEST(Frame, Bytes_follow_the_documented_format) {
  const Bytes expected_bytes = bytes_of({'M', 'T', 'L', 'Y', 4, 0, 10,   0,    81, 0, 0, 0,  // header: version 4, kind 10, 81 bytes
                                         5,   0,   0,   0,   0, 0, 0,    0,                  // version
                                         1,                                                  // kind: delta
                                         0,   0,   0,   0,   0, 0, 0xe0, 0x3f,               // rate 0.5
                                         0,   0,   0,   0,   0, 0, 0,    0xc0,               // momentum -2
                                         0,   0,   0,   0,   0, 0, 0xf0, 0x3f,               // share 1
                                         1,   0,   0,   0,                                   // one part:
                                         3,   0,   0,   0,   9, 1, 0,    0,    0,  0, 0, 0,  //   worker 3, step 265
                                         0,   0,   0,   0,   0, 0, 0xf0, 0x3f,               //   weight 1
                                         8,   1,   0,   0,   0, 0, 0,    0,                  //   parameters of step 264
                                         0,   0,   0,   0,   0, 0, 0,    0,                  // compensation 0
                                         0,   0,   0,   0,   0, 0, 0xd0, 0x3f});             // next rate 0.25
  Bytes bytes = frame_of(Apply{Version{5}, UpdateKind::delta, 0.5, -2, 1, {{WorkerId{3}, Step{265}, 1, Step{264}}}, 0, 0.25});
  bytes.resize(bytes.size() - 4);
  EXPECT_EQ(bytes, expected_bytes);
}

TEST(Frame, Every_field_of_an_order_round_trips) {
  const Order order{WorkerId{7},
                    Step{8},
                    Step{6},
                    Version{9},
                    10,
                    0.25,
                    4,
                    from_seconds(11),
                    from_seconds(2),
                    3,
                    Lease{{{1, 100, 200}, {2, 0, 50}, {2, 60, 61}}}};
  const auto parsed = parse(frame_of(order)).value();
  const auto& back = std::get<Order>(std::get<Complete>(parsed).message);
  EXPECT_EQ(back.worker, order.worker);
  EXPECT_EQ(back.step, order.step);
  EXPECT_EQ(back.parameters, order.parameters);
  EXPECT_EQ(back.version, order.version);
  EXPECT_EQ(back.limit, order.limit);
  EXPECT_EQ(back.micro, order.micro);
  EXPECT_EQ(back.local_steps, order.local_steps);
  EXPECT_EQ(back.training, order.training);
  EXPECT_EQ(back.rate, order.rate);
  EXPECT_EQ(back.push_bits, order.push_bits);
  EXPECT_EQ(back.lease, order.lease);
}

TEST(Frame, FramesFollowEachOtherInOneStream) {
  Bytes stream = frame_of(Hello{.node = "left", .attempt = 1});
  append(Stop{}, stream);
  const auto first = parse(stream).value();
  EXPECT_EQ(std::get<Hello>(std::get<Complete>(first).message).node, "left");
  const auto second = parse(std::span(stream).subspan(std::get<Complete>(first).bytes)).value();
  EXPECT_EQ(name_of(std::get<Complete>(second).message), "Stop");
}

TEST(Frame, Noise_is_refused) {
  Rng rng(3, "noise");
  for (int round = 0; round < 100'000; ++round) {
    Bytes bytes(12 + rng.below(60));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.bits());
    EXPECT_FALSE(parse(bytes).ok());
  }
}

TEST(Frame, Noise_after_a_valid_header_is_refused) {
  Rng rng(4, "noise");
  const std::uint8_t good[]{'M', 'T', 'L', 'Y', 1, 0};
  for (int round = 0; round < 100'000; ++round) {
    Bytes bytes(16 + rng.below(60));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.bits());
    for (std::size_t i = 0; i < std::size(good); ++i) bytes[i] = std::byte{good[i]};
    bytes[6] = static_cast<std::byte>(rng.below(kinds));
    bytes[7] = std::byte{0};
    for (std::size_t i = 0; i < 4; ++i) bytes[8 + i] = static_cast<std::byte>((bytes.size() - 16) >> (8 * i));
    const Bytes frame = resealed(bytes);
    const Result<Parsed> parsed = parse(frame);
    if (parsed.ok()) {
      EXPECT_EQ(frame_of(std::get<Complete>(*parsed).message), frame) << "round " << round;
    }
  }
}

TEST(Frame, SaysWhatIsWrong) {
  const Bytes frame = frame_of(Hello{.node = "node", .attempt = 1});
  const auto with = [&](std::size_t at, int value) {
    Bytes changed = frame;
    changed[at] = static_cast<std::byte>(value);
    return changed;
  };
  expect_refused(with(0, 'X'), "does not speak Motley");
  expect_refused(with(4, 1), "wire version 1");
  expect_refused(with(11, 1), "at most 1048576 are allowed");
  expect_refused(with(17, '?'), "damaged");
  expect_refused(resealed(with(6, 200)), "unknown kind 200");
  expect_refused(resealed(with(12, 3)), "garbled Hello: 1 bytes too many");
  expect_refused(resealed(with(12, 6)), "garbled Hello: profile.bytes_per_value: needs 4 bytes, but 2 are left");
  expect_refused(resealed(with(12, 99)), "garbled Hello: node: claims 99 items, but 48 bytes are left");
}

TEST(Frame, Impossible_values_are_refused) {
  Bytes apply = frame_of(Apply{});
  apply[12 + 8] = std::byte{3};
  expect_refused(resealed(apply), "kind: 3 is not one of its values");
  Bytes contributed = frame_of(Contributed{});
  contributed[12 + 4 + 8 + 8 + 4 + 4 + 8 + 8] = std::byte{2};
  expect_refused(resealed(contributed), "report.finite: 2 is neither 0 nor 1");
  Order order;
  order.lease.ranges = {{0, 5, 4}};
  expect_refused(frame_of(order), "lease.ranges: the range [5, 4) ends before it begins");
}

TEST(Frame, AnOversizeClaimIsRefusedBeforeItsBytesArrive) {
  Bytes frame = frame_of(Hello{.node = std::string(100, 'x'), .attempt = 1});
  const Result<Parsed> parsed = parse(std::span(frame).first(12), {.body_bytes = 100});
  ASSERT_FALSE(parsed.ok());
  EXPECT_TRUE(parse(frame, {.body_bytes = 148}).ok());
}

TEST(Frame, Writing_a_message_beyond_the_limits_is_a_bug) {
  Bytes out;
  EXPECT_THROW(append(Hello{.node = std::string(2 << 20, 'x'), .attempt = 1}, out), Bug);
}

TEST(Frame, Messages_have_names) {
  EXPECT_EQ(name_of(Hello{}), "Hello");
  EXPECT_EQ(name_of(Pulled{}), "Pulled");
}

}  // namespace
}  // namespace motley::wire
