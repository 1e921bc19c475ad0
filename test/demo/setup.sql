-- test/demo/setup.sql: what the story needs and does not tell
CREATE FUNCTION expect(what text, got bigint, wanted bigint) RETURNS void
	LANGUAGE plpgsql AS $$
BEGIN
	IF got IS DISTINCT FROM wanted THEN
		RAISE EXCEPTION '%: % instead of %', what, got, wanted;
	END IF;
END $$;
