// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/provider/event_hub.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace ib::host_abi {
namespace {

using user::control::EventObject;
using user::control::EventOut;

struct Reader {
  explicit Reader(int descriptor) : fd(descriptor) {}
  ~Reader() { ::close(fd); }
  AsyncEventRecord next() const {
    AsyncEventRecord record{};
    EXPECT_EQ(::read(fd, &record, sizeof record), static_cast<ssize_t>(sizeof record));
    return record;
  }
  int fd;
};

EventOut about(EventObject object, std::uint64_t cookie, verbs::EventType type) {
  EventOut event;
  event.object = object;
  event.cookie = cookie;
  event.type = type;
  return event;
}

struct EventsTest : testing::Test {
  EventsTest() { EXPECT_EQ(queue.open(), Status::Ok); }
  AsyncQueue queue;
  EventHub hub;
  int element = 0;  // stands for an ibv_qp
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(&element); }
};

TEST_F(EventsTest, ReaderGetsTheAddressOfTheObjectAndTheType) {
  const Reader reader(queue.hand_over());
  const auto cookie = hub.add(&element, &queue);
  hub.on_event(about(EventObject::Qp, cookie, verbs::EventType::CommEst));
  const auto record = reader.next();
  EXPECT_EQ(record.element, address());
  EXPECT_EQ(record.event_type, static_cast<std::uint32_t>(IBV_EVENT_COMM_EST));
  EXPECT_EQ(hub.remove(cookie).async, 1u) << "it was delivered, so destroying waits for its ack";
}

TEST_F(EventsTest, NothingIsLostWhenTheSocketIsFull) {
  const Reader reader(queue.hand_over());
  constexpr std::uint64_t kMany = 5000;
  for (std::uint64_t i = 0; i < kMany; ++i) {
    queue.post({.element = i, .event_type = IBV_EVENT_PORT_ERR, .reserved = 0});
  }
  for (std::uint64_t i = 0; i < kMany; ++i) {
    ASSERT_EQ(reader.next().element, i);
    queue.flush();
  }
}

TEST_F(EventsTest, UnreadEventsOfADestroyedObjectDisappear) {
  const Reader reader(queue.hand_over());
  int other = 0;
  const auto cookie = hub.add(&element, &queue);
  const auto other_cookie = hub.add(&other, &queue);
  for (int i = 0; i < 1000; ++i) {
    hub.on_event(about(EventObject::Qp, cookie, verbs::EventType::QpFatal));
  }
  hub.on_event(about(EventObject::Srq, other_cookie, verbs::EventType::SrqLimitReached));
  static_cast<void>(reader.next());
  EXPECT_EQ(hub.remove(cookie).async, 1u) << "only the one that was read";
  EXPECT_EQ(reader.next().element, reinterpret_cast<std::uint64_t>(&other));
  EXPECT_EQ(hub.remove(other_cookie).async, 1u);
}

TEST_F(EventsTest, EventsOfGoneObjectsAreDropped) {
  const Reader reader(queue.hand_over());
  const auto cookie = hub.add(&element, &queue);
  static_cast<void>(hub.remove(cookie));
  hub.on_event(about(EventObject::Cq, cookie, verbs::EventType::CqErr));
  EXPECT_EQ(hub.deliver_completion(cookie), nullptr);
  EXPECT_NE(hub.add(&element, &queue), cookie) << "a cookie is never used twice";
}

TEST_F(EventsTest, CompletionEventsAreCounted) {
  const Reader reader(queue.hand_over());
  const auto cookie = hub.add(&element, &queue);
  EXPECT_EQ(hub.deliver_completion(cookie), &element);
  EXPECT_EQ(hub.deliver_completion(cookie), &element);
  EXPECT_EQ(hub.remove(cookie).completion, 2u);
}

TEST_F(EventsTest, PortEventsReachTheirHcaAndTheEndOfSoftibdReachesAll) {
  const Reader reader(queue.hand_over());
  AsyncQueue second;
  ASSERT_EQ(second.open(), Status::Ok);
  const Reader second_reader(second.hand_over());
  hub.add_file(11, &queue);
  hub.add_file(12, &second);
  EventOut event = about(EventObject::Port, 0, verbs::EventType::PortActive);
  event.file = 12;
  event.index = 2;
  hub.on_event(event);
  EXPECT_EQ(second_reader.next().element, 2u);
  hub.on_event(about(EventObject::Device, 0, verbs::EventType::DeviceFatal));
  const auto fatal = static_cast<std::uint32_t>(IBV_EVENT_DEVICE_FATAL);
  EXPECT_EQ(reader.next().event_type, fatal);
  EXPECT_EQ(second_reader.next().event_type, fatal);
}

}  // namespace
}  // namespace ib::host_abi
