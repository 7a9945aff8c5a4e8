// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The mailbox of a control connection: requests and answers that neither side misses while the
// other falls asleep, and whose bytes nobody reads before or after they are there.
#include "linux/client/client_mailbox.h"

#include <sys/mman.h>

// One source has it, and the model links no library.
#include "linux/server/server_mailbox.cpp"  // NOLINT(bugprone-suspicious-include)

namespace ib::os {

// Of other sources; nothing here depends on them.
Instant monotonic_now() {
  return {};
}
bool yield_core() {
  return false;
}
void relax_thread(std::uint32_t) {}
Status refused(const char*, int, std::string&) {
  return Status::InsufficientResources;
}
Result<platform::NativeHandle> make_shared_file(const char*, std::uint64_t, std::string&) {
  return Status::InsufficientResources;
}

}  // namespace ib::os

namespace ib::models {
namespace {

using os::MailboxPage;

// The socket in one direction: bells, which wait until they are heard.
struct Bells {
  std::atomic<std::uint32_t> rung{0};
  std::uint32_t heard = 0;

  void ring() {
    rung.fetch_add(1, std::memory_order_acq_rel);
    wake(&rung);
  }
  void wait() {
    while (rung.load(std::memory_order_acquire) == heard) sleep_on(&rung, sizeof heard, heard);
    ++heard;
  }
};

struct Connection {
  Connection()
      : page(new (::mmap(nullptr, MailboxPage::kBytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) MailboxPage{}),
        server(page) {
    server.set_watched(true);
  }

  MailboxPage* page;
  os::ServerMailbox server;  // unmaps the page
  os::ClientMailbox client{page};
  Bells to_server;
  Bells to_client;
};

constexpr std::size_t kSize = sizeof(verbs::control::RequestHeader);

void request(Connection& c) {
  require(c.client.takes(kSize), "the last request has no answer");
  touch_write(c.page->request);
  if (c.client.post(kSize)) c.to_server.ring();
  const auto waited = c.client.wait_long({}, [&](int) {
    c.to_client.wait();
    return static_cast<ssize_t>(os::kBellBytes);
  });
  require(waited.in_mailbox, "there is no answer");
  require(c.client.answer().size() == kSize, "the answer has the length of another");
  touch_read(c.page->answer);
}

void answer(Connection& c) {
  std::array<std::byte, MailboxPage::kRequestBytes> buffer;
  const auto taken = c.server.take(buffer);
  touch_read(c.page->request);
  require(taken.size() == kSize, "the request has the length of another");
  touch_write(c.page->answer);
  if (c.server.put(taken)) c.to_client.ring();
}

// After EventLoop::stop_watching(): it looks, then it says that it will not, looks, and sleeps.
void serve(Connection& c, int requests) {
  bool watched = true;
  while (requests > 0) {
    if (c.server.has_request()) {
      answer(c);
      --requests;
    } else if (watched) {
      watched = false;
      c.server.set_watched(false);
    } else {
      c.to_server.wait();
    }
  }
}

void exchange(Scene& scene, int requests,
              const std::function<const void*(MailboxPage&)>& weak = {}) {
  auto connection = std::make_shared<Connection>();
  scene.thread([connection, requests] {
    for (int i = 0; i < requests; ++i) request(*connection);
  });
  scene.thread([connection, requests] { serve(*connection, requests); });
  if (weak) scene.weaken({weak(*connection->page)});
}

TEST(MailboxModel, EachRequestGetsItsAnswer) {
  expect_holds([](Scene& scene) { exchange(scene, 1); });
}
// Neither side sleeps here, so that two requests have few steps.
TEST(MailboxModel, AndItsPlaceIsUsedAgain) {
  const auto build = [](Scene& scene, bool weak) {
    auto connection = std::make_shared<Connection>();
    scene.thread([connection] {
      for (int i = 0; i < 2; ++i) {
        touch_write(connection->page->request);
        require(!connection->client.post(kSize), "softibd does not look");
        while (!connection->client.has_answer()) spin();
        touch_read(connection->page->answer);
      }
    });
    scene.thread([connection] {
      for (int i = 0; i < 2; ++i) {
        while (!connection->server.has_request()) spin();
        answer(*connection);
      }
    });
    if (weak) scene.weaken({&connection->page->answered});
  };
  expect_holds([&](Scene& scene) { build(scene, false); });
  expect_fails([&](Scene& scene) { build(scene, true); });
}
TEST(MailboxModel, ARequestFindsSoftibdLookingOrRings) {
  expect_fails(
      [](Scene& scene) { exchange(scene, 1, [](MailboxPage& page) { return &page.watched; }); });
}
TEST(MailboxModel, AnAnswerFindsTheClientLookingOrRings) {
  expect_fails([](Scene& scene) {
    exchange(scene, 1, [](MailboxPage& page) { return &page.client_sleeps; });
  });
}
TEST(MailboxModel, TheNumberOfARequestOrdersItsBytes) {
  expect_fails(
      [](Scene& scene) { exchange(scene, 1, [](MailboxPage& page) { return &page.asked; }); });
}
TEST(MailboxModel, TheNumberOfAnAnswerOrdersItsBytes) {
  expect_fails(
      [](Scene& scene) { exchange(scene, 1, [](MailboxPage& page) { return &page.answered; }); });
}

// An event that softibd has offered is the client's or softibd's, never both or none.
TEST(MailboxModel, AnOfferHasOneTaker) {
  expect_holds([](Scene& scene) {
    struct Offered : Connection {
      bool taken = false;
      bool withdrawn = false;
    };
    auto offered = std::make_shared<Offered>();
    offered->server.offer(1);
    scene.thread([offered] { offered->taken = offered->client.take_offer(1); });
    scene.thread([offered] {
      const bool was_there = offered->server.has_offer(1);
      offered->withdrawn = offered->server.withdraw_offer(1);
      require(was_there || !offered->withdrawn, "what was taken is there again");
    });
    scene.finally([offered] {
      require(offered->taken != offered->withdrawn, "the offer has two takers, or none");
    });
  });
}

}  // namespace
}  // namespace ib::models
