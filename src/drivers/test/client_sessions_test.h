// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// For the random test of this folder: connections to softibd that open, send requests, cancel,
// close and end as softibd/daemon_session.cpp does (io/client_files.h), and check each answer
// against their records. As there, a request is freed inside its completion: asan finds later uses.
#pragma once

#include "drivers/test/client_model_test.h"
#include "io/client_files.h"

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

namespace ib::drivers::test {

class Sessions {
 public:
  struct Flight;
  struct Client;
  struct File final : io::ClientFile {
    using io::ClientFile::ClientFile;
    bool closing() const { return state() >= State::CleaningUp; }

    Book book;
    const fabric::Hca* hca = nullptr;
    bool pulled = false;  // its HCA was, or is being, pulled out
  };
  struct Client final : io::ClientFiles::Owner {
    explicit Client(Sessions& of) : owner(of) {}
    void close_file(io::ClientFile& file) override { owner.close(*this, static_cast<File&>(file)); }
    void on_over() override {}
    bool is_open() const { return files.find(0) != nullptr; }
    // All but file 0.
    template <class What>
    void for_files(What&& what) const {
      for (const auto& [number, file] : files.all()) {
        if (number != 0) what(static_cast<File&>(*file));
      }
    }

    Sessions& owner;
    io::Client who;
    bool attached = false;
    control::AttachOut attach;
    io::ClientFiles files{*this};
    File* zero = nullptr;
    std::list<Flight> flights;
  };
  using Then = std::function<void(const io::Irp& irp)>;
  struct Flight {
    io::Irp irp;
    Client* client = nullptr;
    File* file = nullptr;
    Shape shape{Code::Ping};
    std::vector<std::byte> in;
    std::array<std::byte, 4096> out;
    std::uint64_t began = 0;
    Then then;
    std::list<Flight>::iterator self;
  };

  explicit Sessions(Bench& bench) : bench_(bench) {}
  Sessions(const Sessions&) = delete;
  Sessions& operator=(const Sessions&) = delete;

  std::vector<std::unique_ptr<Client>> clients;
  std::size_t started = 0;
  std::size_t ended = 0;

  Client& connect() {
    Client& client = *clients.emplace_back(std::make_unique<Client>(*this));
    client.who.session = ++last_session_;
    client.who.pid = static_cast<std::uint32_t>(100 + last_session_);
    bench_.host.alive.insert(client.who.pid);
    auto zero = std::make_unique<File>(bench_.root->device(), 0, client.who, nullptr);
    client.zero = zero.get();
    create(new_flight(client, {Code::Ping}), std::move(zero));
    return client;
  }

  void send(Client& client, File& file, const Shape& shape, std::vector<std::byte> in,
            Then then = {}) {
    Flight& flight = new_flight(client, shape);
    flight.in = std::move(in);
    flight.irp.in = flight.in;
    flight.then = std::move(then);
    for (platform::NativeHandle& handle : flight.irp.in_handles) handle = FakeHost::handle();
    if (Held* named = named_by(flight, file)) {
      ++named->under_way;
      if (shape.destroys) {
        ++named->ends;
        named->disturbed = flight.began;
      }
    }
    flight.file = &file;
    const bool accepted = client.files.begin(file, flight.irp);
    IB_ASSERT(accepted);
    io::call_driver(file.object().device(), flight.irp.start(&on_done, &flight));
  }

  void open(Client& client, io::DeviceObject& device, const fabric::Hca& hca, bool pulled) {
    auto file = std::make_unique<File>(device, client.files.new_number(), client.who,
                                       &client.zero->object());
    file->hca = &hca;
    file->pulled = pulled;
    create(new_flight(client, {Code::Open}), std::move(file));
  }

  void close(Client& client, File& file) {
    Flight& flight = new_flight(client, {Code::Close});
    flight.file = &file;
    send_close(client.files.close(file, flight.irp.start(&on_done, &flight)));
  }

  // The socket closes.
  void end(Client& client) {
    if (client.is_open()) bench_.root->disconnect(client.zero->object());
    client.files.end();
    client.files.go_on();
  }

  // Not in the middle of anything: those that are over are let go of.
  void reap() {
    std::erase_if(clients, [](const auto& client) { return client->files.is_over(); });
  }

  // Files of an HCA, also those that are being opened.
  template <class What>
  void for_files_of(const fabric::Hca& hca, What&& what) {
    for (const auto& client : clients) {
      client->for_files([&](File& file) {
        if (file.hca == &hca) what(*client, file);
      });
    }
  }

 private:
  Flight& new_flight(Client& client, const Shape& shape) {
    ++started;
    Flight& flight = client.flights.emplace_back();
    flight.self = std::prev(client.flights.end());
    flight.client = &client;
    flight.shape = shape;
    flight.began = ++tick_;
    flight.irp.requestor_mode = io::RequestorMode::User;
    flight.irp.code = number_of(shape.code);
    flight.irp.out = flight.out;
    return flight;
  }

  void create(Flight& flight, std::unique_ptr<File> file) {
    flight.file = file.get();
    flight.client->files.open(std::move(file), flight.irp);
    io::call_driver(flight.file->object().device(), flight.irp.start(&on_done, &flight));
  }
  // If it is its turn.
  static void send_close(std::optional<io::IrpRef> irp) {
    if (!irp) return;
    io::DeviceObject& device = (*irp)->file->device();
    io::call_driver(device, *std::move(irp));
  }

  static void on_done(io::Irp&, void* context) {
    auto& flight = *static_cast<Flight*>(context);
    flight.client->owner.finish(flight);
  }

  void finish(Flight& flight) {
    ++ended;
    Client& client = *flight.client;
    const bool ok = flight.irp.status == Status::Ok;
    check_form(flight);
    if (flight.irp.major == io::Major::DeviceControl) take_note(flight);
    const bool opens_zero = flight.irp.major == io::Major::Create && flight.file == client.zero;
    const bool may_fail = !opens_zero && flight.irp.major != io::Major::Close;
    EXPECT_TRUE(ok || may_fail) << flight.irp.reason;
    if (flight.then) flight.then(flight.irp);
    std::optional<io::IrpRef> close = client.files.end(*flight.file, flight.irp);
    client.flights.erase(flight.self);
    send_close(std::move(close));
    client.files.go_on();
  }

  // --- is the answer right? ---

  static Book& book_of(Client& client, File& file, Kind kind) {
    return kind == kChannel || kind == kBacking ? client.zero->book : file.book;
  }
  static Held* named_by(const Flight& flight, File& file) {
    if (flight.shape.named == kNone || flight.in.size() < 4) return nullptr;
    return &book_of(*flight.client, file, flight.shape.named)
                .at({flight.shape.named, named_handle(flight)});
  }
  static std::uint32_t named_handle(const Flight& flight) {
    std::uint32_t handle = 0;
    std::memcpy(&handle, flight.in.data(), sizeof handle);
    return handle;
  }
  static bool is_going(const Flight& flight) {
    return flight.client->files.is_ending() || flight.file->closing();
  }
  static std::string what(const Flight& flight) {
    return "request " + std::to_string(flight.irp.code) + ": " + status_text(flight.irp.status) +
           ", " + flight.irp.reason;
  }

  void check_form(const Flight& flight) {
    const io::Irp& irp = flight.irp;
    const bool ok = irp.status == Status::Ok;
    EXPECT_EQ(ok, irp.reason.empty()) << what(flight);
    EXPECT_TRUE(ok || irp.out_size == 0) << what(flight);
    if (irp.status == Status::Cancelled) {
      EXPECT_TRUE(irp.is_cancelled() || is_going(flight)) << what(flight);
    }
    if (irp.status == Status::DeviceRemoved && irp.major == io::Major::DeviceControl &&
        flight.file->number() != 0) {
      EXPECT_TRUE(flight.file->pulled) << what(flight);
    }
    if (irp.status == Status::Disconnected) {
      EXPECT_TRUE(is_going(flight) || flight.shape.code == Code::WaitEvent) << what(flight);
    }
  }

  void take_note(Flight& flight) {
    const std::uint64_t now = ++tick_;
    Held* named = named_by(flight, *flight.file);
    if (!is_going(flight)) {
      if (flight.irp.status == Status::Ok) {
        accepted(flight, now);
      } else if (named != nullptr) {
        refused(flight);
      }
    }
    if (named == nullptr) return;
    --named->under_way;
    if (flight.shape.destroys) --named->ends;
  }

  void refused(const Flight& flight) {
    const Shape& shape = flight.shape;
    const Book& book = book_of(*flight.client, *flight.file, shape.named);
    const Handle handle{shape.named, named_handle(flight)};
    const std::uint32_t own_ends = shape.destroys ? 1 : 0;
    const bool asks_only =
        shape.code == Code::QueryMr || shape.code == Code::QuerySrq || shape.code == Code::QueryQp;
    const bool names_nothing =
        flight.irp.status == Status::InvalidParameter || flight.irp.status == Status::NotFound;
    if (names_nothing && (asks_only || shape.destroys)) {
      EXPECT_FALSE(book.had_undisturbed(handle, flight.began, own_ends)) << what(flight);
    }
    if (flight.irp.status == Status::DeviceBusy) {
      // An XRC receive queue pair may be busy with another's request.
      const auto is_other = [&](const auto& client) {
        return std::any_of(client->flights.begin(), client->flights.end(),
                           [&](const Flight& f) { return &f != &flight && f.file->number() != 0; });
      };
      EXPECT_TRUE(has_dependents(flight, handle) ||
                  std::any_of(clients.begin(), clients.end(), is_other))
          << what(flight);
    }
  }

  bool has_dependents(const Flight& flight, const Handle& handle) const {
    const Held* held = book_of(*flight.client, *flight.file, handle.first).find(handle);
    if (held != nullptr && !held->groups.empty()) return true;
    return any_book(flight, handle, [&](const Book& book) { return book.has_user(handle); });
  }
  // Channels are used by queues of all files of a process.
  template <class Is>
  static bool any_book(const Flight& flight, const Handle& handle, Is&& is) {
    if (handle.first != kChannel) return is(flight.file->book);
    bool any = false;
    flight.client->for_files([&](File& file) { any = any || (!file.closing() && is(file.book)); });
    return any;
  }

  void accepted(Flight& flight, std::uint64_t now) {
    const Shape& shape = flight.shape;
    const auto had = [&](Kind kind, std::uint32_t handle) {
      return book_of(*flight.client, *flight.file, kind).had_since({kind, handle}, flight.began);
    };
    EXPECT_TRUE(Ownership(had).of_request(shape, flight.in))
        << "a handle that is not the sender's was accepted by " << what(flight);
    if (shape.code == Code::Attach) {
      flight.client->attached = true;
      flight.client->attach =
          read_as<control::AttachOut>(std::span(flight.out).first(flight.irp.out_size));
    }
    Held* named = named_by(flight, *flight.file);
    if (shape.destroys) released(flight, *named, now);
    if (shape.creates != kNone) created(flight, now);
    if (shape.code == Code::ReregMr) {
      change_uses(named->uses, read_as<control::ReregMrIn>(flight.in));
    }
    if (shape.code == Code::AttachMcast || shape.code == Code::DetachMcast) {
      const auto in = read_as<control::McastIn>(flight.in);
      if (shape.code == Code::AttachMcast) named->groups.emplace(in.mgid, in.mlid);
      if (shape.code == Code::DetachMcast) named->groups.erase({in.mgid, in.mlid});
    }
  }

  void released(const Flight& flight, Held& held, std::uint64_t now) {
    const Handle handle{flight.shape.named, named_handle(flight)};
    ASSERT_GT(held.count, 0u) << what(flight);
    held.disturbed = now;
    if (--held.count > 0) return;
    held.released = now;
    EXPECT_FALSE(
        any_book(flight, handle, [&](const Book& book) { return book.has_certain_user(handle); }))
        << "destroyed although others depend on it: " << what(flight);
  }

  void created(const Flight& flight, std::uint64_t now) {
    const Shape& shape = flight.shape;
    const Handle handle{shape.creates, static_cast<std::uint32_t>(flight.irp.information)};
    const bool shared = shape.code == Code::OpenQp || shape.code == Code::OpenXrcd;
    EXPECT_TRUE(shared || !is_known(handle)) << "a handle was given twice: " << what(flight);
    Held& held = book_of(*flight.client, *flight.file, handle.first).at(handle);
    held.disturbed = now;
    if (held.count++ > 0) return;
    held.uses = uses_of(shape.code, flight.in);
    held.groups.clear();
  }

  bool is_known(const Handle& handle) const {
    bool known = false;
    const auto look = [&](const File& file) {
      known = known || (!file.closing() && file.book.has(handle));
    };
    for (const auto& client : clients) {
      if (!client->is_open()) continue;
      look(*client->zero);
      client->for_files(look);
    }
    return known;
  }

  Bench& bench_;
  std::uint64_t tick_ = 0;
  std::uint64_t last_session_ = 0;
};

}  // namespace ib::drivers::test
